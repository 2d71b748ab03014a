package nfsserver_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// TestShutdownSaysItOnce: a server is several of package oncrpc. That its time was over is said
// once, and not by each of them.
func TestShutdownSaysItOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: memfs.New(memfs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // whether the servers with nothing to do say so is chance
		srv, err := nfsserver.New(nfsserver.Options{Exports: table})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		err = srv.Shutdown(ctx)
		if e := <-served; !errors.Is(e, nfsserver.ErrClosed) {
			t.Error(e)
		}
		if err != nil && strings.Count(err.Error(), context.Canceled.Error()) != 1 {
			t.Fatalf("%q", err)
		}
	}
}
