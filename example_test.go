package nfsbox_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"net"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// filer starts a server that has an empty, writable directory, and returns its
// URL.
func filer() (url string, stop func()) {
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: memfs.New(memfs.Options{Mode: 0o777})})
	if err != nil {
		log.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table})
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }() // it returns when stop is called
	return "nfs://" + l.Addr().String() + "/", func() { _ = srv.Close() }
}

// Write a file, and read it back the way that Go reads files.
func Example() {
	url, stop := filer()
	defer stop()
	ctx := context.Background()

	c, err := nfsbox.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	root, _, err := c.FS().Root(ctx)
	if err != nil {
		log.Fatal(err)
	}

	file, _, err := c.FS().Open(ctx, vfs.At{Dir: root, Name: "hello.txt"}, &vfs.OpenHow{
		Access: vfs.ShareWrite,
		Create: &vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateUnchecked},
	})
	if err != nil {
		log.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, file, []byte("Hello, filer.\n"), 0, vfs.Unstable, &w); err != nil {
		log.Fatal(err)
	}
	if err := file.Close(ctx); err != nil { // from here on it is on the server's disk
		log.Fatal(err)
	}

	data, err := fs.ReadFile(iofs.New(ctx, c.FS(), root), "hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", data)
	// Output: Hello, filer.
}

// List a directory without ever holding more than a page of it.
func ExampleClient_FS() {
	url, stop := filer()
	defer stop()
	ctx := context.Background()

	c, err := nfsbox.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	root, _, err := c.FS().Root(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"ants", "bees"} {
		if _, _, _, err := c.FS().Create(ctx, root, name, &vfs.CreateHow{Type: vfs.TypeDir}); err != nil {
			log.Fatal(err)
		}
	}

	for e, err := range c.FS().ReadDir(ctx, root, vfs.Pos{}, vfs.MaskV3, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s is a %v\n", e.Name, e.Attr.Type)
	}
	// Output:
	// ants is a directory
	// bees is a directory
}

// A URL that asks for what there is not says what, and what to do.
func ExampleParseURL() {
	_, err := nfsbox.ParseURL("nfs://filer/export?sec=krb5p")
	fmt.Println(err)
	// Output: nfs URL: argument sec: "krb5p" is not built yet; say sec=sys if the server takes it
}
