package nfsbox_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/vfs"
)

// Write a file, and read it back the way that Go reads files.
func Example() {
	url, stop := filer() // "nfs://filer/export/projects"
	defer stop()

	ctx := context.Background()
	c, err := nfsbox.Dial(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	tree, err := c.Tree(ctx)
	if err != nil {
		log.Fatal(err)
	}

	// When WriteFile returns, the file is on the server's disk.
	if err := tree.WriteFile("hello.txt", []byte("Hello, filer.\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	data, err := fs.ReadFile(tree, "hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", data)
	// Output: Hello, filer.
}

// Below io/fs there is the file system itself, which speaks of handles, and of
// all that NFS knows. Here it lists a directory, without ever holding more than
// a page of it.
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
