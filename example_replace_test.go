package nfsbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"

	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// replaceFile makes data the contents of a file. A program that opens it finds the old
// contents or the new ones, never a part, whatever fails on either side.
func replaceFile(tree *iofs.FS, name string, data []byte) error {
	unfinished := name + ".new" // O_EXCL: nobody else is at it
	file, err := tree.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync() // the data is on the server's disk before the name is
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return errors.Join(err, tree.Remove(unfinished))
	}
	return tree.Rename(unfinished, name)
}

// Replace a file safely.
func Example_replaceFile() {
	tree, unmount := mount()
	defer unmount()

	if err := replaceFile(tree, "www/hello.txt", []byte("Hello again.\n")); err != nil {
		log.Fatal(err)
	}
	data, err := fs.ReadFile(tree, "www/hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", data)
	// Output: Hello again.
}
