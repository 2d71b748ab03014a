package nfsserver_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/vfs/osfs"
)

// Serve a directory of this host to the programs of this host, until the program is
// interrupted.
func ExampleListenAndServe() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	tree, err := osfs.Open("/srv/photos", osfs.Options{})
	if err != nil {
		log.Fatal(err)
	}
	err = nfsserver.ListenAndServe(ctx, "", export.Export{Path: "/", FS: tree, ReadOnly: true})
	if err := errors.Join(err, tree.Close()); err != nil {
		log.Fatal(err)
	}
}

// Serve a directory to a network, which may read it, and to one host, which may change it.
func ExampleListenAndServe_rules() {
	tree, err := osfs.Open("/srv/projects", osfs.Options{})
	if err != nil {
		log.Fatal(err)
	}
	err = nfsserver.ListenAndServe(context.Background(), ":2049", export.Export{Path: "/projects", FS: tree, Clients: []export.Rule{
		{Match: "10.0.0.7"},
		{Match: "10.0.0.0/8", ReadOnly: true, Squash: export.SquashRoot},
	}})
	if err := errors.Join(err, tree.Close()); err != nil {
		log.Fatal(err)
	}
}

//go:embed example_test.go
var site embed.FS

// Serve what is embedded in the program.
func ExampleServe_embed() {
	read(export.Export{Path: "/", FS: iofs.From(site)}, "example_test.go")
	// Output: package nfsserver_test
}

// read serves x on loopback, and prints the first line of a file, as a client reads it.
func read(x export.Export, name string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- nfsserver.Serve(ctx, l, x) }()

	line, err := firstLine(ctx, "nfs://"+l.Addr().String()+"/", name)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		log.Fatal(err)
	}
	fmt.Println(line)
}

func firstLine(ctx context.Context, url, name string) (string, error) {
	client, err := nfsbox.Dial(ctx, url)
	if err != nil {
		return "", err
	}
	tree, err := client.Tree(ctx)
	if err != nil {
		return "", errors.Join(err, client.Close())
	}
	text, err := tree.ReadFile(name)
	line, _, _ := strings.Cut(string(text), "\n")
	return line, errors.Join(err, client.Close())
}
