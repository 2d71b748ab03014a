package nfsbox_test

import (
	"context"
	"errors"
	"log"
	"net"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// filer stands for a server: it starts one that has an empty, writable directory,
// and returns its URL.
func filer() (url string, stop func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- nfsserver.Serve(ctx, l, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})
	}()
	return "nfs://" + l.Addr().String() + "/", func() {
		cancel()
		if err := <-ended; err != nil {
			log.Fatal(err)
		}
	}
}

// mount stands for how a program begins, which the first example shows: Dial, and
// iofs.Root. The tree has a few files.
func mount() (tree *iofs.FS, unmount func()) {
	url, stop := filer()
	ctx := context.Background()
	c, err := nfsbox.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	tree, err = c.Tree(ctx)
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(
		tree.MkdirAll("www/pages", 0o755),
		tree.WriteFile("www/hello.txt", []byte("Hello, filer.\n"), 0o644),
		tree.WriteFile("www/pages/list.tmpl", []byte("{{range .}}- {{.}}\n{{end}}"), 0o644),
	)
	if err != nil {
		log.Fatal(err)
	}
	return tree, func() {
		if err := c.Close(); err != nil {
			log.Fatal(err)
		}
		stop()
	}
}
