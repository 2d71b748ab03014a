package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/port"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// server serves on loopback until the test ends.
type server struct {
	t    testing.TB
	opt  nfsserver.Options
	addr string
	srv  *nfsserver.Server
	done chan error
}

// serve serves file systems, each under its path, and returns the port.
func serve(t testing.TB, exports ...export.Export) string {
	t.Helper()
	s := start(t, exports...)
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func start(t testing.TB, exports ...export.Export) *server {
	t.Helper()
	addr, err := port.Free("127.0.0.1") // which is still free when a test has it begin again
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: addr}
	s.export(exports...)
	s.begin()
	t.Cleanup(s.end)
	return s
}

// export says what is served from the next begin on. The key stays the same.
func (s *server) export(exports ...export.Export) {
	s.t.Helper()
	table, err := export.NewTable(export.Key{1, 2, 3}, exports...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.opt = nfsserver.Options{Exports: table, Locks: true}
}

// begin starts the server, the next time at the same port.
func (s *server) begin() {
	s.t.Helper()
	var err error
	if s.srv, err = nfsserver.New(s.opt); err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr, s.done = l.Addr().String(), make(chan error, 1)
	go func() { s.done <- s.srv.Serve(l) }()
}

func (s *server) end() {
	s.t.Helper()
	if err := s.srv.Close(); err != nil {
		s.t.Error(err)
	}
	if err := <-s.done; !errors.Is(err, nfsserver.ErrClosed) {
		s.t.Errorf("Serve: %v", err)
	}
}

// dial opens a URL until the test ends, as the superuser, and over the network alone
// unless opts say otherwise: nothing else goes on beside what a test does.
func dial(t testing.TB, url string, opts ...nfsbox.Option) *nfsbox.Client {
	t.Helper()
	opts = append([]nfsbox.Option{nfsbox.WithCaller(vfs.Caller{}), nfsbox.WithLocalIO(nfsbox.LocalIOOff)}, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := nfsbox.Dial(ctx, url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { expect.OK(t, c.Close()) })
	t.Cleanup(func() {
		// Local I/O asks the server behind everybody's back: such a call ends, and one that was left behind does not.
		expect.Soon(t, "the client's calls end", func() bool { return c.Stats().InFlight == 0 })
		if s := c.Stats(); s.Dirty != 0 {
			t.Errorf("the client left things behind: %+v", s)
		}
	})
	return c
}

// faulty is a client at one side of the proxy, and what the server at the other
// side serves.
type faulty struct {
	t    *testing.T
	s    *server // over TCP; nil in memory
	p    *rpcfault.Proxy
	c    *nfsbox.Client
	fs   vfs.FS // the client's
	at   vfs.FS // the server's: the truth
	root vfs.Handle
}

// overTCP puts everything on loopback. query is of the client's URL.
func overTCP(t *testing.T, at vfs.FS, seed uint64, query string) *faulty {
	t.Helper()
	s := start(t, export.Export{Path: "/", FS: at})
	var d net.Dialer
	addr := s.addr // which stays over restarts
	p := rpcfault.New(rpcfault.Options{Seed: seed, Upstream: func(ctx context.Context) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", addr)
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	t.Cleanup(func() {
		closeProxy(t, p)
		if err := <-served; !errors.Is(err, rpcfault.ErrClosed) {
			t.Errorf("the proxy: %v", err)
		}
	})
	f := mountFaulty(t, p, at, "nfs://"+l.Addr().String()+"/?"+query)
	f.s = s
	return f
}

// closeProxy says what a proxy has done to a test that failed.
func closeProxy(t *testing.T, p *rpcfault.Proxy) {
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if s := p.Stats(); s.Open != 0 || s.Waiting != 0 {
		t.Errorf("the proxy left things behind: %+v", s)
	}
	if t.Failed() {
		t.Log(p)
	}
}

func mountFaulty(t *testing.T, p *rpcfault.Proxy, at vfs.FS, url string, opts ...nfsbox.Option) *faulty {
	t.Helper()
	c := dial(t, url, opts...)
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &faulty{t: t, p: p, c: c, fs: c.FS(), at: at, root: root}
}

// backends are what is served: memory, and a directory.
var backends = []struct {
	name string
	make func(t *testing.T) vfs.FS
}{
	{"memfs", func(*testing.T) vfs.FS { return memfs.New(memfs.Options{Mode: 0o777}) }},
	{"localfs", func(t *testing.T) vfs.FS {
		d := disk{dir: t.TempDir(), opt: localfs.Options{Handles: localfs.HandlesMap, StateDir: t.TempDir()}}
		d.open(t)
		t.Cleanup(func() { d.close(t) })
		return d.local
	}},
}

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }
