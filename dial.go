package nfsbox

import (
	"context"
	"math"
	"net"
	"os"

	"github.com/nfsbox/nfsbox/internal/nfsclient"
	"github.com/nfsbox/nfsbox/internal/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/writeback"
	"github.com/nfsbox/nfsbox/vfs"
)

// nobody is who is asking where the system has no user numbers, as in libnfs.
const nobody = 65534

// Option changes how Dial works. Where a URL says the same, the Option holds.
type Option func(*config)

// config is what Dial goes by.
type config struct{ nfsclient.Options }

// WithCaller says who is asking. Of the caller's groups the first 16 are sent.
func WithCaller(c vfs.Caller) Option {
	return func(o *config) { o.FS.Caller = c }
}

// WithDialer makes connections with dial, which has the type of
// net.Dialer.DialContext and is called with "tcp" and "host:port". The arguments
// of the URL that are about sockets then have no effect.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(o *config) { o.Dial = dial }
}

// WithMachineName says what this host is called in credentials; the default is
// its host name. More than 255 bytes are an error of Dial.
func WithMachineName(name string) Option {
	return func(o *config) { o.FS.Machine = name }
}

// WithRand takes random bytes (call numbers, hidden names, pauses) from fill
// instead of crypto/rand. It is called concurrently.
func WithRand(fill func(p []byte)) Option {
	return func(o *config) { o.Rand = fill }
}

// WithReadOnly makes whatever changes something vfs.ErrROFS, as readonly in the
// URL does.
func WithReadOnly() Option {
	return func(o *config) { o.FS.ReadOnly = true }
}

// Dial mounts what the URL names, a directory or something in one, and returns
// the client. The directory must exist. ctx bounds Dial itself, not the client.
func Dial(ctx context.Context, rawURL string, opts ...Option) (*Client, error) {
	o, err := options(rawURL, opts)
	if err != nil {
		return nil, err
	}
	conn, err := nfsclient.Mount(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, fs: writeback.New(conn.FS(), writeback.Options{})}, nil
}

// Export is a directory that a server offers to its clients.
type Export struct {
	Path   string   // as the server wrote it
	Groups []string // hosts and groups of hosts that may mount it; none: everybody
}

// Exports lists what the URL's server offers. The URL's path is not looked at.
func Exports(ctx context.Context, rawURL string, opts ...Option) ([]Export, error) {
	o, err := options(rawURL, opts)
	if err != nil {
		return nil, err
	}
	list, err := nfsclient.Exports(ctx, o)
	exports := make([]Export, len(list))
	for i, e := range list {
		exports[i] = Export(e)
	}
	return exports, err
}

// options is what the URL and the Options ask for together.
func options(rawURL string, opts []Option) (nfsclient.Options, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nfsclient.Options{}, err
	}
	o := config{nfsclient.Options{
		Host:       u.Host,
		Path:       u.Path,
		Version:    u.Version,
		Port:       u.Port,
		NFSPort:    u.NFSPort,
		MountPort:  u.MountPort,
		SourcePort: nfsclient.SourcePort(u.SourcePort),
		Interface:  u.Interface,
		SynCount:   u.SynCount,
		Timeout:    u.Timeout,
		FS: v3.Options{
			Caller:   caller(u),
			ReadMax:  u.ReadSize,
			WriteMax: u.WriteSize,
			DirCount: u.DirCount,
			MaxCount: u.MaxCount,
			ReadOnly: u.ReadOnly,
		},
	}}
	o.patience(u)
	for _, opt := range opts {
		opt(&o)
	}
	return o.Options, nil
}

// patience takes over how often is tried what failed. In the options 0 is the
// default and a negative number is none.
func (o *config) patience(u *URL) {
	if u.Retries != nil {
		if o.Retries = *u.Retries; o.Retries == 0 {
			o.Retries = -1
		}
	}
	if u.Reconnect != nil {
		switch o.DialTries = *u.Reconnect; o.DialTries {
		case -1:
			o.DialTries = math.MaxInt
		case 0:
			o.DialTries, o.DialOnce = 1, true
		}
	}
}

// caller is who is asking: the process, but for what the URL says. Groups are
// the process's own, and only if the user is.
func caller(u *URL) vfs.Caller {
	c := vfs.Caller{UID: id(os.Getuid()), GID: id(os.Getgid())}
	if u.UID == nil && u.GID == nil {
		if groups, err := os.Getgroups(); err == nil { // a system without groups has none to send
			for _, g := range groups {
				c.Groups = append(c.Groups, id(g))
			}
		}
	}
	if u.UID != nil {
		c.UID = *u.UID
	}
	if u.GID != nil {
		c.GID = *u.GID
	}
	return c
}

func id(n int) uint32 {
	if n < 0 {
		return nobody
	}
	return uint32(n)
}
