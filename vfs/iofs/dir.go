package iofs

import (
	"fmt"
	"io"
	"io/fs"

	"github.com/nfsbox/nfsbox/vfs"
)

// readAhead is how many entries ReadDir(n) of an open directory fetches at least, so
// that a small n does not cost a page of the listing each time. The rest is kept for
// the next call.
const readAhead = 512

// dir is an open directory: a place in a listing. It is used by one goroutine at
// a time.
type dir struct {
	fs     *FS
	at     found
	name   string // as opened, for errors
	ahead  []fs.DirEntry
	pos    vfs.Pos // behind ahead
	end    bool    // nothing is behind pos
	stuck  error   // not nil: the listing cannot go on from pos
	closed bool
}

// errStuck is the error if a server gives all entries the same cookie: going on from it
// would list the same entries for ever.
var errStuck = fmt.Errorf("the place behind the entries that were listed is the one before them: %w", vfs.ErrBadCookie)

// Stat describes the directory as it was when it was opened.
func (d *dir) Stat() (fs.FileInfo, error) {
	if d.closed {
		return nil, d.fail("stat", fs.ErrClosed)
	}
	return info{d.at.name, d.at.attr}, nil
}

func (d *dir) Read([]byte) (int, error) { return 0, d.fail("read", vfs.ErrIsDir) }

func (d *dir) Close() error {
	if d.closed {
		return d.fail("close", fs.ErrClosed)
	}
	d.closed, d.ahead = true, nil
	return nil
}

func (d *dir) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: d.name, Err: err}
}

// ReadDir returns the next n entries, or, if n <= 0, all that are left, in the
// order of the file system. After an error the next call goes on where it came.
func (d *dir) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.closed {
		return nil, d.fail("readdir", fs.ErrClosed)
	}
	var err error
	if n <= 0 || len(d.ahead) < n {
		err = d.fetch(n)
	}
	out := d.ahead
	if n > 0 && len(out) >= n {
		d.ahead = out[n:]
		return out[:n:n], nil // an error is left for the next call
	}
	d.ahead = nil
	switch {
	case err != nil:
		return out, d.fail("readdir", err)
	case n > 0 && len(out) == 0:
		return nil, io.EOF
	}
	return out, nil
}

// fetch lists until n entries are ahead, and some more, or, if n <= 0, to the
// end.
func (d *dir) fetch(n int) error {
	if d.end || d.stuck != nil {
		return d.stuck
	}
	from := d.pos.Cookie
	for e, err := range d.fs.list(d.at.handle, d.pos) {
		if err != nil {
			return err
		}
		d.ahead, d.pos = append(d.ahead, e), e.next
		if n > 0 && len(d.ahead) >= max(n, readAhead) {
			if d.pos.Cookie == from {
				d.stuck = errStuck
			}
			return d.stuck
		}
	}
	d.end = true
	return nil
}
