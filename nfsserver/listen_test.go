package nfsserver_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// serve serves exports until the function that it returns is called, which returns what
// Serve does.
func serve(t *testing.T, exports ...export.Export) (url string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- nfsserver.Serve(ctx, l, exports...) }()
	return "nfs://" + l.Addr().String(), func() error {
		cancel()
		return <-ended
	}
}

// dial hands the tree at url to do, and closes the connection: a server that ends waits for
// its clients.
func dial(t *testing.T, url string, do func(*iofs.FS), options ...nfsbox.Option) error {
	t.Helper()
	c, err := nfsbox.Dial(t.Context(), url, options...)
	if err != nil {
		return err
	}
	tree, err := c.Tree(t.Context())
	if err == nil {
		do(tree)
	}
	return errors.Join(err, c.Close())
}

// TestServe: what is written over the network is in the file system, and the end is no error.
func TestServe(t *testing.T) {
	one, two := memfs.New(memfs.Options{Mode: 0o777}), memfs.New(memfs.Options{Mode: 0o777})
	url, stop := serve(t, export.Export{Path: "/one", FS: one}, export.Export{Path: "/two", FS: two, ReadOnly: true})
	err := errors.Join(dial(t, url+"/one", func(tree *iofs.FS) {
		if err := tree.WriteFile("file", []byte("text"), 0o644); err != nil {
			t.Error(err)
		}
	}), dial(t, url+"/two", func(tree *iofs.FS) {
		if err := tree.WriteFile("file", []byte("text"), 0o644); !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("a read-only export: %v, want %v", err, vfs.ErrROFS)
		}
	}))
	if err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Errorf("the end: %v", err)
	}
	inside, err := iofs.Root(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := inside.ReadFile("file"); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestServeClients: rules that are given are those that hold.
func TestServeClients(t *testing.T) {
	url, stop := serve(t, export.Export{Path: "/", FS: memfs.New(memfs.Options{}), Clients: []export.Rule{{Match: "192.0.2.1"}}})
	if err := dial(t, url+"/", func(*iofs.FS) {}); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("a client that no rule admits: %v, want %v", err, vfs.ErrAccess)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestServeFails: what cannot be served is an error, and the listener is closed.
func TestServeFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := nfsserver.Serve(t.Context(), l, export.Export{Path: "no path", FS: memfs.New(memfs.Options{})}); err == nil {
		t.Error("a path that is none is served")
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is left open: %v", err)
	}
	if err := nfsserver.ListenAndServe(t.Context(), "no-address"); err == nil {
		t.Error("an address that is none is listened at")
	}
	l, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := nfsserver.Serve(t.Context(), l, export.Export{Path: "/", FS: memfs.New(memfs.Options{})}); err == nil || errors.Is(err, nfsserver.ErrClosed) {
		t.Errorf("a listener that is closed: %v", err)
	}
}

// TestExampleNotes: the file system of the example keeps the contract.
func TestExampleNotes(t *testing.T) {
	vfstest.RunReadOnly(t, &notes{names: []string{"ants", "bees", "none"}, texts: []string{"They walk.\n", "They fly.\n", ""}})
}
