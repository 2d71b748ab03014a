package nfsbox_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
)

// Serve a tree over HTTP. Ranges and If-Modified-Since work.
func Example_httpFileServer() {
	tree, unmount := mount()
	defer unmount()

	www, err := fs.Sub(tree, "www")
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(http.FileServerFS(www))
	defer server.Close()

	response, err := http.Get(server.URL + "/hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s", response.Status, page)
	// Output: 200 OK: Hello, filer.
}

// Walk a tree. It costs the server a page of a listing for each directory, and
// nothing for the sizes, which came with the names.
func Example_walkDir() {
	tree, unmount := mount()
	defer unmount()

	err := fs.WalkDir(tree, "www", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Println(path, info.Size())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// www/hello.txt 14
	// www/pages/list.tmpl 26
}

// Read a range of a file. Any number of goroutines may do so at once.
func Example_readRange() {
	tree, unmount := mount()
	defer unmount()

	file, err := tree.OpenFile("www/hello.txt", os.O_RDONLY, 0)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	part := make([]byte, 5)
	if _, err := file.ReadAt(part, 7); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", part)
	// Output: filer
}

// Parse templates that lie on the server.
func Example_templates() {
	tree, unmount := mount()
	defer unmount()

	pages, err := template.ParseFS(tree, "www/pages/*.tmpl")
	if err != nil {
		log.Fatal(err)
	}
	if err := pages.ExecuteTemplate(os.Stdout, "list.tmpl", []string{"ants", "bees"}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// - ants
	// - bees
}

// Write a tree into an archive.
func Example_tar() {
	tree, unmount := mount()
	defer unmount()

	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.AddFS(tree); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	r := tar.NewReader(&archive)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(header.Name)
	}
	// Output:
	// www/
	// www/hello.txt
	// www/pages/
	// www/pages/list.tmpl
}
