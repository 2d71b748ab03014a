package iofs_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/iofs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// newFS stands for a file system on a server. That of nfsbox.Dial is used in the
// same way.
func newFS() vfs.FS { return memfs.New(memfs.Options{}) }

// Make a tree of a file system, write to it, and read it as any io/fs.FS.
func ExampleRoot() {
	tree, err := iofs.Root(context.Background(), newFS())
	if err != nil {
		log.Fatal(err)
	}
	if err := tree.MkdirAll("plan/2027", 0o755); err != nil {
		log.Fatal(err)
	}
	if err := tree.WriteFile("plan/2027/budget.csv", []byte("rent,1200\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	found, err := fs.Glob(tree, "plan/*/*.csv")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found)
	// Output: [plan/2027/budget.csv]
}

// Append to a log. Close says whether all lines are on the server's disk.
func ExampleFS_OpenFile() {
	tree, err := iofs.Root(context.Background(), newFS())
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range []string{"begun\n", "done\n"} {
		file, err := tree.OpenFile("log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := file.WriteString(line); err != nil {
			log.Fatal(err)
		}
		if err := file.Close(); err != nil {
			log.Fatal(err)
		}
	}

	data, err := tree.ReadFile("log")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", data)
	// Output:
	// begun
	// done
}

// Copy between files. io.Copy moves large pieces, by ReadFrom and WriteTo.
func ExampleFile_ReadFrom() {
	tree, err := iofs.Root(context.Background(), newFS())
	if err != nil {
		log.Fatal(err)
	}
	file, err := tree.Create("copy")
	if err != nil {
		log.Fatal(err)
	}
	n, err := io.Copy(file, strings.NewReader("from anywhere"))
	if err != nil {
		log.Fatal(err)
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(n)
	// Output: 13
}
