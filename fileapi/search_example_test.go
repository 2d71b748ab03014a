package fileapi_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/nfsbox/nfsbox/fileapi"
)

// The server looks for lines in a tree, and only what it finds crosses the network.
func ExampleClient_Search() {
	ctx := context.Background()
	c, err := fileapi.New("https://nas.example:9999", fileapi.Options{Token: os.Getenv("TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	o := fileapi.SearchOptions{Patterns: []string{"timed? out"}, Recursive: true, Rules: []fileapi.SearchRule{{Include: true, Pattern: "*.log"}}}
	done, err := c.Search(ctx, "/var/log", o, func(f fileapi.Found) error {
		switch {
		case f.Err != nil:
			log.Print(f.Err)
		case f.Line != nil:
			fmt.Printf("%q:%d:%q\n", f.Path, f.Line.Number, f.Line.Text)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Matches, "lines in", done.MatchedFiles, "of", done.Files, "files;", done.Failures, "could not be searched")
}
