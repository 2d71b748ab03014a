package fileapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// MaxMessage bounds the bytes that one Get or Put moves. More is an error.
const MaxMessage = 1 << 20

// maxAnswer bounds an answer in protobuf, in bytes: MaxMessage and the rest of the message.
// More is resource_exhausted.
const maxAnswer = MaxMessage + 1<<16

// Options say how to speak to a server. The zero value is for one on this host that
// lets its users in without a token.
type Options struct {
	// Token is the bearer token to show; "": none. It goes over the network in clear
	// if the URL is not https.
	Token string
	// TLS is for https: the server's authority, and a client certificate.
	TLS *tls.Config
	// JSON speaks JSON and not protobuf.
	JSON bool
	// HTTP2 puts all calls on one connection, also without TLS. Otherwise each call in
	// progress has one of its own, which moves large files faster.
	HTTP2 bool
	// MaxConns bounds the connections without HTTP2; at the bound calls wait. 0: 512.
	MaxConns int
}

const defaultMaxConns = 512

// Client speaks to one server. All methods may be called concurrently.
type Client struct {
	rpc    pb.FileServiceClient
	http   *http.Transport
	client *http.Client // over it
}

// New makes a client of the server at base, such as "http://127.0.0.1:9999". It does
// not yet connect.
func New(base string, o Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("file API: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("file API: %q: want http://HOST:PORT or https://HOST:PORT", u.Redacted())
	}
	if o.MaxConns <= 0 {
		o.MaxConns = defaultMaxConns
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!o.HTTP2)
	protocols.SetHTTP2(o.HTTP2)
	protocols.SetUnencryptedHTTP2(o.HTTP2)
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     o.TLS,
		Protocols:           protocols,
		MaxConnsPerHost:     o.MaxConns,
		MaxIdleConnsPerHost: o.MaxConns,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
		WriteBufferSize:     64 << 10,
		ReadBufferSize:      64 << 10,
	}
	if o.HTTP2 {
		t.MaxConnsPerHost = 0 // one connection is enough until it has as many calls as the server allows
	}
	options := []connect.ClientOption{
		connect.WithAcceptCompression("gzip", nil, nil), // the server has none
		connect.WithReadMaxBytes(maxAnswer),
	}
	if o.JSON {
		options = append(options, connect.WithProtoJSON(), connect.WithReadMaxBytes(2*maxAnswer)) // base64
	}
	c := &Client{http: t, client: &http.Client{Transport: t}}
	if o.Token != "" {
		options = append(options, connect.WithInterceptors(bearer("Bearer "+o.Token)))
	}
	c.rpc = pb.NewFileServiceClient(c.client, u.String(), options...)
	return c, nil
}

// Close closes the connections that no call uses. Those of calls in progress are
// closed a minute after.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// bearer puts a token into every request.
type bearer string

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, q connect.AnyRequest) (connect.AnyResponse, error) {
		q.Header().Set("Authorization", string(b))
		return next(ctx, q)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", string(b))
		return conn
	}
}

func (bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// Stat returns the attributes of the object that name leads to.
func (c *Client) Stat(ctx context.Context, name string) (*pb.FileInfo, error) {
	q := &pb.StatRequest{}
	if err := setName(q, name); err != nil {
		return nil, failed("stat", name, err)
	}
	r, err := c.rpc.Stat(ctx, q)
	return r.GetInfo(), failed("stat", name, err)
}

// Lstat is Stat, but of a symbolic link itself.
func (c *Client) Lstat(ctx context.Context, name string) (*pb.FileInfo, error) {
	q := &pb.StatRequest{NoFollow: true}
	if err := setName(q, name); err != nil {
		return nil, failed("lstat", name, err)
	}
	r, err := c.rpc.Stat(ctx, q)
	return r.GetInfo(), failed("lstat", name, err)
}

// Exist reports whether the object that name leads to exists. After an error that is not
// known.
func (c *Client) Exist(ctx context.Context, name string) (bool, error) {
	q := &pb.ExistRequest{}
	if err := setName(q, name); err != nil {
		return false, failed("exist", name, err)
	}
	r, err := c.rpc.Exist(ctx, q)
	return r.GetExists(), failed("exist", name, err)
}

// MakeDirectory makes a directory with the mode.
func (c *Client) MakeDirectory(ctx context.Context, path string, mode uint32) error {
	q := &pb.MakeDirectoryRequest{Mode: &mode}
	if err := setName(q, path); err != nil {
		return failed("mkdir", path, err)
	}
	_, err := c.rpc.MakeDirectory(ctx, q)
	return failed("mkdir", path, err)
}

// Delete removes the name of anything but a directory.
func (c *Client) Delete(ctx context.Context, path string) error { return c.remove(ctx, path, false) }

// DeleteDirectory removes an empty directory.
func (c *Client) DeleteDirectory(ctx context.Context, path string) error {
	return c.remove(ctx, path, true)
}

func (c *Client) remove(ctx context.Context, path string, dir bool) error {
	q := &pb.DeleteRequest{Directory: dir}
	if err := setName(q, path); err != nil {
		return failed("delete", path, err)
	}
	_, err := c.rpc.Delete(ctx, q)
	return failed("delete", path, err)
}

// Entry is a name in a directory.
type Entry struct {
	Name string       // its bytes, which need not be UTF-8
	Info *pb.FileInfo // nil: List was not asked for it, or the name is gone
}

// List iterates over a directory, a page at a time, without "." and "..". It ends with
// the first error. Names that exist throughout are listed once.
func (c *Client) List(ctx context.Context, path string, withInfo bool) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		q := &pb.ListRequest{WithInfo: withInfo}
		if err := setName(q, path); err != nil {
			yield(Entry{}, failed("list", path, err))
			return
		}
		for {
			page, err := c.rpc.List(ctx, q)
			if err != nil {
				yield(Entry{}, failed("list", path, err))
				return
			}
			for _, e := range page.GetEntries() {
				if !yield(Entry{Name: e.GetName() + string(e.GetRawName()), Info: e.GetInfo()}, nil) {
					return
				}
			}
			// A token that does not change would make the listing endless.
			if page.GetNextPageToken() == "" || page.GetNextPageToken() == q.GetPageToken() {
				return
			}
			q.PageToken = page.GetNextPageToken()
		}
	}
}

// Echo sends data to the server and back, to measure the cost of the protocol alone.
func (c *Client) Echo(ctx context.Context, data []byte) ([]byte, error) {
	r, err := c.rpc.Echo(ctx, &pb.EchoRequest{Data: data})
	return r.GetData(), failed("echo", "", err)
}
