package iofs

import (
	"errors"
	"io"
	"io/fs"

	"github.com/nfsbox/nfsbox/vfs"
)

// dir is an open directory: a place in a listing.
type dir struct {
	fs     *FS
	at     found
	name   string // as opened, for errors
	pos    vfs.Pos
	end    bool
	closed bool
}

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
	d.closed = true
	return nil
}

func (d *dir) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: d.name, Err: err}
}

// ReadDir returns the next n entries, or, if n <= 0, all that are left, in the
// order of the file system.
func (d *dir) ReadDir(n int) ([]fs.DirEntry, error) {
	if d.closed {
		return nil, d.fail("readdir", fs.ErrClosed)
	}
	var out []fs.DirEntry
	err := d.read(func(e info) bool {
		out = append(out, e)
		return n <= 0 || len(out) < n
	})
	if err != nil {
		return out, d.fail("readdir", err)
	}
	if n > 0 && len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}

// read lists from where d stands until more answers false.
func (d *dir) read(more func(info) bool) error {
	if d.end {
		return nil
	}
	f := d.fs
	for e, err := range f.fs.ReadDir(f.ctx, d.at.handle, d.pos, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			return err
		}
		next := e.Next
		name := string(e.Name)
		if vfs.CheckName(name) != nil || !fs.ValidPath(name) {
			d.pos = next
			continue
		}
		i, err := d.complete(name, e)
		if errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrStale) {
			d.pos = next
			continue // gone since it was listed
		}
		if err != nil {
			return err
		}
		d.pos = next
		if !more(i) {
			return nil
		}
	}
	d.end = true
	return nil
}

// complete asks for what the listing left out of an entry.
func (d *dir) complete(name string, e *vfs.Entry) (i info, err error) {
	i = info{name, e.Attr}
	if i.attr.Has(needed) {
		return i, nil
	}
	f, h := d.fs, e.Handle
	if h.IsZero() {
		if h, i.attr, _, err = f.fs.Lookup(f.ctx, d.at.handle, name); err != nil || i.attr.Has(needed) {
			return i, err
		}
	}
	i.attr, err = f.fs.GetAttr(f.ctx, h, vfs.MaskV3)
	return i, err
}
