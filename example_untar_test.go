package nfsbox_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path"

	"github.com/nfsbox/nfsbox/vfs/iofs"
)

// extract unpacks an archive below a directory. Its names cannot lead out of
// there, and its links are not followed out of the tree.
func extract(tree *iofs.FS, dir string, archive io.Reader) error {
	r := tar.NewReader(archive)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !fs.ValidPath(path.Clean(header.Name)) {
			return fmt.Errorf("archive with the name %q", header.Name)
		}
		name, mode := path.Join(dir, header.Name), header.FileInfo().Mode()
		switch header.Typeflag {
		case tar.TypeDir:
			err = tree.MkdirAll(name, mode)
		case tar.TypeSymlink:
			err = tree.Symlink(header.Linkname, name)
		case tar.TypeReg:
			err = extractFile(tree, name, mode, r)
		case tar.TypeLink:
			if !fs.ValidPath(path.Clean(header.Linkname)) {
				return fmt.Errorf("archive with a link to %q", header.Linkname)
			}
			err = tree.Link(path.Join(dir, header.Linkname), name)
		case tar.TypeXGlobalHeader: // of the archive, and no file
		default:
			err = fmt.Errorf("archive with %q of type %q", header.Name, header.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func extractFile(tree *iofs.FS, name string, mode fs.FileMode, data io.Reader) error {
	file, err := tree.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, data)
	if cerr := file.Close(); err == nil {
		err = cerr // an error of a write may come out only here
	}
	return err
}

// Unpack an archive onto a server.
func Example_untar() {
	tree, unmount := mount()
	defer unmount()

	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := errors.Join(w.AddFS(tree), w.Close()); err != nil {
		log.Fatal(err)
	}
	if err := extract(tree, "restored", &archive); err != nil {
		log.Fatal(err)
	}
	data, err := fs.ReadFile(tree, "restored/www/hello.txt")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", data)
	// Output: Hello, filer.
}
