package fileapi_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"strings"

	"github.com/nfsbox/nfsbox/fileapi"
)

// A file goes up and comes down, and both sides agree on its checksum.
func Example() {
	ctx := context.Background()
	c, err := fileapi.New("https://nas.example:9999", fileapi.Options{Token: os.Getenv("TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	stored, err := c.Upload(ctx, "/notes/today.txt", strings.NewReader("Buy milk.\n"), fileapi.UploadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored as", stored.Checksum)
	if _, err := c.Download(ctx, "/notes/today.txt", os.Stdout, fileapi.Range{}); err != nil {
		log.Fatal(err)
	}
}

// A directory of any size is listed a page at a time.
func ExampleClient_List() {
	ctx := context.Background()
	c, err := fileapi.New("http://127.0.0.1:9999", fileapi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for e, err := range c.List(ctx, "/notes", true) {
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Name, e.Info.GetSize(), e.Info.GetMtime().AsTime())
	}
}

// Content that the server has is not sent again.
func ExampleClient_UploadContent() {
	ctx := context.Background()
	c, err := fileapi.New("http://127.0.0.1:9999", fileapi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	f, err := os.Open("image.iso")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	stored, err := c.UploadContent(ctx, f)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored.Checksum, "was there already:", stored.Existed)
}
