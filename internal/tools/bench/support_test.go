package bench_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// server serves a memfs on loopback until the test ends.
type server struct {
	t    testing.TB
	fs   *memfs.FS
	srv  *nfsserver.Server
	addr string
}

func serve(t testing.TB, o memfs.Options) *server {
	t.Helper()
	o.Mode = 0o777
	s := &server{t: t, fs: memfs.New(o)}
	table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: s.fs})
	if err != nil {
		t.Fatal(err)
	}
	if s.srv, err = nfsserver.New(nfsserver.Options{Exports: table}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.srv.Serve(l) }()
	t.Cleanup(func() {
		if err := s.srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, nfsserver.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func (s *server) url(path string) string { return "nfs://" + s.addr + "/" + path }

// options are those of a verb, with the superuser as caller.
func (s *server) options(verb, path string) bench.Options {
	return bench.Options{
		Verb: verb, URL: s.url(path), Dial: []nfsbox.Option{nfsbox.WithCaller(vfs.Caller{})}, WarmUp: -1,
	}
}

// calls are how often the server was called since it started.
func (s *server) calls(proc string) uint64 { return s.srv.Stats().Calls[proc] }

// put makes a file in the root.
func (s *server) put(name string, size int) vfs.Handle {
	s.t.Helper()
	root, _, err := s.fs.Root(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	f, o, err := s.fs.Open(s.t.Context(), vfs.At{Dir: root, Name: name}, &vfs.OpenHow{
		Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(s.t.Context(), f, make([]byte, size), 0, vfs.FileSync, &w); err != nil {
		s.t.Fatal(err)
	}
	if err := f.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return o.H
}

// names are the entries of the root.
func (s *server) names() (names []string) {
	s.t.Helper()
	root, _, err := s.fs.Root(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for e, err := range s.fs.ReadDir(s.t.Context(), root, vfs.Pos{}, 0, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, string(e.Name))
	}
	return names
}

// run runs o, which must succeed without a failure.
func run(t testing.TB, o bench.Options) *bench.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := bench.Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Errors != 0 || len(res.Faults) != 0 {
		t.Fatalf("%d errors: %+v", res.Errors, res.Faults)
	}
	return res
}

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }
