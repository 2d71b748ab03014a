package iofs

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/vfs"
)

// needed are the attributes that a fs.FileInfo is made of.
const needed = vfs.MaskType | vfs.MaskMode | vfs.MaskSize | vfs.MaskMtime

// found is where a path led.
type found struct {
	handle vfs.Handle
	attr   vfs.Attr
	name   string // the last part of the path that was asked for
}

// walker is a path half walked. Unlike [vfs.Resolve] it remembers the
// directories that it came through, so that ".." never asks what is above the
// root.
type walker struct {
	f      *FS
	follow bool
	dirs   []found // from the root to where the walk stands
	rest   []string
	links  int
}

// walk follows name; errors name op and name.
func (f *FS) walk(op, name string, follow bool) (found, error) {
	if !fs.ValidPath(name) {
		return found{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	w := walker{f: f, follow: follow, dirs: []found{{handle: f.root}}}
	if name != "." {
		w.rest = strings.Split(name, "/")
	}
	for len(w.rest) > 0 {
		part := w.rest[0]
		w.rest = w.rest[1:]
		if err := w.step(part); err != nil {
			return found{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	at := w.dirs[len(w.dirs)-1]
	if !at.attr.Has(needed) {
		var err error
		if at.attr, err = f.fs.GetAttr(f.ctx, at.handle, vfs.MaskV3); err != nil {
			return found{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	at.name = path.Base(name)
	return at, nil
}

func (w *walker) step(part string) error {
	switch part {
	case "", ".":
		return nil
	case "..":
		if len(w.dirs) == 1 {
			return errEscapes
		}
		w.dirs = w.dirs[:len(w.dirs)-1]
		return nil
	}
	f := w.f
	h, attr, _, err := f.fs.Lookup(f.ctx, w.dirs[len(w.dirs)-1].handle, part)
	if err != nil {
		return err
	}
	if !attr.Has(needed) {
		if attr, err = f.fs.GetAttr(f.ctx, h, vfs.MaskV3); err != nil {
			return err
		}
	}
	if attr.Type == vfs.TypeSymlink && (w.follow || len(w.rest) > 0) {
		return w.link(h)
	}
	w.dirs = append(w.dirs, found{handle: h, attr: attr})
	return nil
}

// link puts the target of the symbolic link h in front of what is left.
func (w *walker) link(h vfs.Handle) error {
	if w.links++; w.links > vfs.MaxSymlinks {
		return syscall.ELOOP
	}
	target, _, err := w.f.fs.Readlink(w.f.ctx, h)
	switch {
	case err != nil:
		return err
	case target == "":
		return vfs.ErrNoEnt
	case len(target) > vfs.MaxPath:
		return vfs.ErrNameTooLong
	case target[0] == '/':
		return errEscapes
	}
	w.rest = append(strings.Split(target, "/"), w.rest...)
	return nil
}
