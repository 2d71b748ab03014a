package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/jobs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// filer stands for a server: it starts one that has an empty, writable directory, and returns its URL.
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

// A directory of this host is copied to a server, and compared with the copy. What fails is printed.
func Example() {
	url, stop := filer()
	defer stop()
	dir, err := os.MkdirTemp("", "jobs-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"one.txt", "two.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("Hello, filer.\n"), 0o644); err != nil {
			log.Fatal(err)
		}
	}

	events := make(chan jobs.Event, 16)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for e := range events {
			if e.Type == jobs.Failed {
				fmt.Println(e.Path, e.Err)
			}
		}
	}()
	ctx := context.Background()
	sum, err := jobs.Copy(ctx, dir, url+"copy", jobs.CopyOptions{
		NoOwner: true,
		Options: jobs.Options{Events: events, Rate: jobs.NewRate(100 << 20)},
	})
	<-told
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Files, "files,", sum.Bytes, "bytes")

	if err := os.WriteFile(filepath.Join(dir, "two.txt"), []byte("Hello, world.\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	_, err = jobs.Verify(ctx, dir, url+"copy", jobs.VerifyOptions{})
	fmt.Println("different:", errors.Is(err, jobs.ErrDifferent))
	// Output:
	// 2 files, 28 bytes
	// different: true
}

// What lies in a tree is counted, while a goroutine shows how far the scan has come.
func ExampleScan() {
	url, stop := filer()
	defer stop()
	dir, err := os.MkdirTemp("", "jobs-")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, size := range map[string]int{"small": 10, "large": 1 << 20, "left.tmp": 5} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	ctx := context.Background()
	if _, err := jobs.Copy(ctx, dir, url+"copy", jobs.CopyOptions{NoOwner: true}); err != nil {
		log.Fatal(err)
	}

	events := make(chan jobs.Event, 16)
	told := make(chan jobs.Counters)
	go func() {
		var last jobs.Counters
		for e := range events {
			if e.Type == jobs.Progress {
				last = e.Counters
			}
		}
		told <- last
	}()
	sum, err := jobs.Scan(ctx, url+"copy", jobs.ScanOptions{
		Options: jobs.Options{Events: events, Rules: []string{"- *.tmp"}},
	})
	fmt.Println("all was counted:", (<-told).Final)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Files, "files,", sum.Bytes, "bytes; left out:", sum.LeftOut)
	largest, _ := sum.Table("largest_files")
	fmt.Println("the largest:", largest.Rows[0].Path)
	// Output:
	// all was counted: true
	// 2 files, 1048586 bytes; left out: 1
	// the largest: large
}
