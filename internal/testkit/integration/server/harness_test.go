package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// The callers of the tests.
var (
	root  = oncrpc.AuthSys{Machine: "test", UID: 0, GID: 0}
	alice = oncrpc.AuthSys{Machine: "test", UID: 1000, GID: 1000, GIDs: []uint32{1000, 50}}
	bob   = oncrpc.AuthSys{Machine: "test", UID: 2000, GID: 2000}
)

// rig is a server on loopback over a file system in memory, and a raw client.
type rig struct {
	t      testing.TB
	fs     *memfs.FS
	srv    *nfsserver.Server
	addr   string
	client *oncrpc.Client
	auth   oncrpc.Auth
	root   []byte // the handle of the export
	log    *logbuf.Buffer
}

func newRig(t testing.TB, o memfs.Options) *rig {
	t.Helper()
	if o.Mode == 0 {
		o.Mode = 0o777
	}
	fs := memfs.New(o)
	t.Cleanup(func() {
		if n := fs.OpenFiles(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
	r := serve(t, fs, nfsserver.Options{})
	r.fs = fs
	return r
}

// serve exports fs as "/".
func serve(t testing.TB, fs vfs.FS, o nfsserver.Options) *rig {
	t.Helper()
	noLeaks(t)
	r := &rig{t: t, log: &logbuf.Buffer{}}
	if o.Exports == nil {
		table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		o.Exports = table
	}
	o.Log = slog.New(slog.NewTextHandler(r.log, nil))
	r.srv, r.addr = start(t, o)
	r.client = dial(t, r.addr)
	r.as(root)
	r.root = r.mount("/")
	return r
}

// start serves on a free port until the test ends, and looks for what it lost.
func start(t testing.TB, o nfsserver.Options) (*nfsserver.Server, string) {
	t.Helper()
	srv, err := nfsserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, nfsserver.ErrClosed) {
			t.Errorf("Serve returned %v", err)
		}
		if st := srv.Stats(); st.ReplyBuffers != 0 || st.ReplyBytes != 0 || st.RPC.Buffers != 0 || st.RPC.Conns != 0 || st.RPC.Panics != 0 {
			t.Errorf("the server left things behind: %+v", st)
		}
	})
	return srv, l.Addr().String()
}

// dial returns a client whose connections end at once when they are closed, as
// those of a client that crashes.
func dial(t testing.TB, addr string) *oncrpc.Client {
	t.Helper()
	c := oncrpc.NewClient(oncrpc.ClientOptions{
		FirstXID: 0xfffffff0,
		Dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return c, c.(*net.TCPConn).SetLinger(0)
		},
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// noLeaks looks for goroutines of ours when everything else is cleaned up.
func noLeaks(t testing.TB) {
	t.Cleanup(func() {
		var left []string
		// A goroutine that has returned may still be listed for a while.
		for end := time.Now().Add(onceWait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			left = left[:0]
			buf := make([]byte, 1<<20)
			for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
				if strings.Contains(g, "nfsbox/oncrpc.(*") && !strings.Contains(g, "testing.tRunner") {
					left = append(left, g)
				}
			}
			if len(left) == 0 {
				return
			}
		}
		t.Errorf("goroutines left behind:\n%s", strings.Join(left, "\n\n"))
	})
}

// as makes the calls that follow those of another caller.
func (r *rig) as(a oncrpc.AuthSys) *rig {
	r.t.Helper()
	auth, err := a.Auth()
	if err != nil {
		r.t.Fatal(err)
	}
	r.auth = auth
	return r
}

// call makes a call that must be answered. What res borrows is copied off the
// connection's buffers by never giving them back before the test ends.
func (r *rig) call(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) {
	r.t.Helper()
	reply, err := r.client.Call(r.t.Context(), p, r.auth, args, res)
	if err != nil {
		r.t.Fatalf("%v: %v", p, err)
	}
	r.t.Cleanup(reply.Release)
}

func (r *rig) mnt(path string) mount3.Mountres3 {
	r.t.Helper()
	var res mount3.Mountres3
	r.call(mount3.MOUNTPROC3_MNT, &mount3.Mountargs{Path: []byte(path)}, &res)
	return res
}

func (r *rig) mount(path string) []byte {
	r.t.Helper()
	res := r.mnt(path)
	if res.FhsStatus != mount3.MNT3_OK {
		r.t.Fatalf("mounting %q: %v", path, res.FhsStatus)
	}
	return bytes.Clone(res.Mountinfo.Fhandle)
}

// exportsOf is a table of one export, which nobody uses.
func exportsOf(t testing.TB) *export.Table {
	t.Helper()
	table, err := export.NewTable(export.Key{}, export.Export{Path: "/", FS: memfs.New(memfs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	return table
}
