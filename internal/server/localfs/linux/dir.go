//go:build linux

package linux

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// Dir reads the entries of a directory. It is for one goroutine.
type Dir struct {
	FD  int    // open for reading
	Buf []byte // room for entries; a name of 255 bytes takes 280
	// rest is what of Buf was not looked at yet.
	rest []byte
}

// Read fills the buffer. If it leaves nothing in it, the directory is at its end. A
// directory that was removed meanwhile is vfs.ErrStale.
func (d *Dir) Read() error {
	var n int
	err := Again(func() (err error) {
		n, err = unix.Getdents(d.FD, d.Buf)
		return err
	})
	switch {
	case err == nil:
		d.rest = d.Buf[:n]
		return nil
	case errors.Is(err, unix.ENOENT):
		return vfs.ErrStale
	}
	return Fail("getdents64", err)
}

// Empty reports whether Read has to be called before Next.
func (d *Dir) Empty() bool { return len(d.rest) == 0 }

// Next takes the first of the entries that are left. Its name is good until Read.
func (d *Dir) Next() (e Dirent, err error) {
	e, n := ParseDirent(d.rest)
	if n == 0 {
		return e, fmt.Errorf("localfs: getdents64 returned a malformed entry: %w", vfs.ErrIO)
	}
	d.rest = d.rest[n:]
	return e, nil
}
