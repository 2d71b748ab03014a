package bench

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/fileapi"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

const (
	// oneMessage bounds the files that go in one message, in bytes; larger ones
	// are streams, as with fileapi.Client.Upload.
	oneMessage = 128 << 10

	// apiPatience bounds an operation, as the client of NFS has its own bound. At
	// the bound it has failed.
	apiPatience = 3 * time.Minute
)

// API says how to speak to a file API.
type API struct {
	JSON     bool        // instead of protobuf
	Plain    bool        // files by HTTP's own methods, instead of calls
	HTTP2    bool        // all calls on one connection
	Token    string      // to show; "": none
	TLS      *tls.Config // for https; nil: the host's authorities
	Checksum string      // sha256, blake3 or crc32c; "": sha256
}

// place is what a URL says of a file API.
type place struct {
	base string // http://host:port
	dir  string // "/export/dir"
	api  API
}

// parseAPI takes a URL apart: http://host:port/export/dir[?encoding=plain][&http2=true].
func parseAPI(o *Options) (*place, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, usageError{err}
	case u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, usage("%s: want http://HOST:PORT/EXPORT/DIR or https://HOST:PORT/EXPORT/DIR", redacted(o.URL))
	case o.LocalIO || o.InPlace:
		return nil, usage("%s: local I/O, and writing in place, are NFS's; the file API has neither", o.URL)
	}
	p := &place{base: u.Scheme + "://" + u.Host, dir: path.Clean("/" + u.Path), api: o.API}
	args, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, usageError{err}
	}
	for name, values := range args {
		switch arg := name + "=" + values[len(values)-1]; arg {
		case "encoding=json", "encoding=protobuf", "encoding=plain":
			p.api.JSON, p.api.Plain = arg == "encoding=json", arg == "encoding=plain"
		case "http2=true", "http2=false":
			p.api.HTTP2 = arg == "http2=true"
		default:
			return nil, usage("%s: argument %q; encoding=json, encoding=protobuf, encoding=plain, http2=true and http2=false are possible", o.URL, arg)
		}
	}
	if _, err := pb.NewChecksum(p.api.Checksum); err != nil {
		return nil, usageError{err}
	}
	return p, nil
}

// apiTarget is a directory of a file API.
type apiTarget struct {
	c   *fileapi.Client
	dir string
	o   fileapi.UploadOptions
	h   *plainHTTP // nil: files go by calls

	calls [len(apiCalls)]atomic.Uint64
}

// The calls and methods of a file API.
const (
	callStat = iota
	callExist
	callMakeDirectory
	callDelete
	callGet
	callPut
	callDownload
	callUpload
	callEcho
	callPUT
	callGET
	callHEAD
	callDELETE
)

// apiCalls are their names.
var apiCalls = [...]string{
	callStat: "Stat", callExist: "Exist", callMakeDirectory: "MakeDirectory", callDelete: "Delete",
	callGet: "Get", callPut: "Put", callDownload: "Download", callUpload: "Upload", callEcho: "Echo",
	callPUT: "HTTP PUT", callGET: "HTTP GET", callHEAD: "HTTP HEAD", callDELETE: "HTTP DELETE",
}

func reachAPI(ctx context.Context, o *Options) (target, error) {
	p, err := parseAPI(o)
	if err != nil {
		return nil, err
	}
	c, err := fileapi.New(p.base, fileapi.Options{
		Token: p.api.Token, TLS: p.api.TLS, JSON: p.api.JSON, HTTP2: p.api.HTTP2, MaxConns: o.Concurrency,
	})
	if err != nil {
		return nil, usageError{err}
	}
	t := &apiTarget{
		c: c, dir: p.dir,
		o: fileapi.UploadOptions{Checksum: p.api.Checksum, NoSync: o.NoSync},
	}
	if p.api.Plain {
		if t.h, err = newPlain(p, o); err != nil {
			return nil, err
		}
	}
	bounded, end := t.begin(ctx, callStat)
	defer end()
	if _, err := c.Stat(bounded, t.dir); err != nil {
		c.Close()
		return nil, unreachable(ctx, o.URL, err)
	}
	return t, nil
}

// begin counts a call, and bounds it.
func (t *apiTarget) begin(ctx context.Context, call int) (context.Context, context.CancelFunc) {
	t.calls[call].Add(1)
	return context.WithTimeout(ctx, apiPatience)
}

func (t *apiTarget) top() folder {
	f := &apiFolder{t, t.dir}
	if t.h != nil {
		return &plainFolder{f, t.h}
	}
	return f
}

func (t *apiTarget) echo(ctx context.Context, data []byte) error {
	ctx, end := t.begin(ctx, callEcho)
	defer end()
	back, err := t.c.Echo(ctx, data)
	return cmp.Or(err, same(back, data))
}

func (t *apiTarget) counters() counters {
	x := counters{calls: make(map[string]uint64)}
	for i, name := range apiCalls {
		if n := t.calls[i].Load(); n != 0 {
			x.calls[name] = n
			x.rpcs += n
		}
	}
	return x
}

func (t *apiTarget) close() error {
	t.c.Close()
	if t.h != nil {
		t.h.client.CloseIdleConnections()
	}
	return nil
}

// apiFolder is a directory below one.
type apiFolder struct {
	t   *apiTarget
	dir string
}

func (f *apiFolder) at(name string) string { return strings.TrimSuffix(f.dir, "/") + "/" + name }

func (f *apiFolder) enter(ctx context.Context, name string, create bool) (folder, error) {
	at := f.at(name)
	if create {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		whole, cancel := outlast(ctx)
		defer cancel()
		whole, end := f.t.begin(whole, callMakeDirectory)
		defer end()
		if err := f.t.c.MakeDirectory(whole, at, dirMode); err == nil || !errors.Is(err, fs.ErrExist) {
			return &apiFolder{f.t, at}, err
		}
	}
	// Not what a link leads to: Lstat.
	ctx, end := f.t.begin(ctx, callStat)
	defer end()
	info, err := f.t.c.Lstat(ctx, at)
	if err == nil && info.GetType() != pb.FileType_FILE_TYPE_DIRECTORY {
		err = fmt.Errorf("%s is no directory", at)
	}
	return &apiFolder{f.t, at}, err
}

func (f *apiFolder) upload(ctx context.Context, name string, data []byte) error {
	if len(data) <= oneMessage {
		ctx, end := f.t.begin(ctx, callPut)
		defer end()
		_, err := f.t.c.Put(ctx, f.at(name), data, f.t.o)
		return err
	}
	ctx, end := f.t.begin(ctx, callUpload)
	defer end()
	_, err := f.t.c.Upload(ctx, f.at(name), bytes.NewReader(data), f.t.o)
	return err
}

func (f *apiFolder) download(ctx context.Context, name string, want, _ []byte) error {
	how := fileapi.Range{Checksum: f.t.o.Checksum}
	if len(want) <= oneMessage {
		ctx, end := f.t.begin(ctx, callGet)
		defer end()
		got, _, err := f.t.c.Get(ctx, f.at(name), how)
		if err != nil {
			return err
		}
		return same(got, want)
	}
	ctx, end := f.t.begin(ctx, callDownload)
	defer end()
	rest := comparing(want)
	if _, err := f.t.c.Download(ctx, f.at(name), &rest, how); err != nil {
		return err
	}
	return same(rest, nil)
}

// comparing takes what it holds, and nothing else.
type comparing []byte

func (c *comparing) Write(p []byte) (int, error) {
	if len(p) > len(*c) || !bytes.Equal(p, (*c)[:len(p)]) {
		return 0, errContent
	}
	*c = (*c)[len(p):]
	return len(p), nil
}

func (f *apiFolder) exist(ctx context.Context, name string) (bool, error) {
	ctx, end := f.t.begin(ctx, callExist)
	defer end()
	return f.t.c.Exist(ctx, f.at(name))
}

func (f *apiFolder) remove(ctx context.Context, name string, isDir bool) error {
	ctx, end := f.t.begin(ctx, callDelete)
	defer end()
	if isDir {
		return f.t.c.DeleteDirectory(ctx, f.at(name))
	}
	return f.t.c.Delete(ctx, f.at(name))
}

func (f *apiFolder) list(ctx context.Context) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for e, err := range f.t.c.List(ctx, f.dir, true) {
			kind := e.Info.GetType()
			x := entry{e.Name, kind == pb.FileType_FILE_TYPE_DIRECTORY, kind == pb.FileType_FILE_TYPE_REGULAR}
			if !yield(x, err) || err != nil {
				return
			}
		}
	}
}
