package iofs_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// exampleTree stands for what nfsbox.Dial gives: a file system with a page in it.
func exampleTree(ctx context.Context) (vfs.FS, vfs.Handle) {
	f := memfs.New(memfs.Options{})
	root, _, err := f.Root(ctx)
	if err != nil {
		log.Fatal(err)
	}
	file, _, err := f.Open(ctx, vfs.At{Dir: root, Name: "hello.txt"}, &vfs.OpenHow{
		Access: vfs.ShareWrite,
		Create: &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o644}},
	})
	if err != nil {
		log.Fatal(err)
	}
	var w vfs.Written
	if _, err := vfs.WriteFull(ctx, file, []byte("hello, world"), 0, vfs.FileSync, &w); err != nil {
		log.Fatal(err)
	}
	if err := file.Close(ctx); err != nil {
		log.Fatal(err)
	}
	return f, root
}

// Serve a tree over HTTP.
func ExampleNew_http() {
	ctx := context.Background()
	f, root := exampleTree(ctx)

	server := httptest.NewServer(http.FileServerFS(iofs.New(ctx, f, root)))
	defer server.Close()

	response, err := http.Get(server.URL + "/hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	page, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.StatusCode, string(page))
	// Output: 200 hello, world
}

// Write a tree into an archive.
func ExampleNew_tar() {
	ctx := context.Background()
	f, root := exampleTree(ctx)

	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.AddFS(iofs.New(ctx, f, root)); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	r := tar.NewReader(&archive)
	for {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(header.Name, header.Size)
	}
	// Output: hello.txt 12
}
