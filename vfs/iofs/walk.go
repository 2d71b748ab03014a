package iofs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

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

// place is where a name is, or could be.
type place struct {
	dir  vfs.Handle
	name string // as the server knows it
}

// goal says what a walk looks for.
type goal uint8

const (
	object    goal = iota // what the path leads to, links followed
	itself                // what has the name, even if that is a link
	directory             // a directory, by its handle alone: the cache may answer
	parent                // the directory that has the path's last part, or could have it
	possible              // object, or the place where there is none
)

// walker is the state of a walk along a path. Unlike [vfs.Resolve] it keeps the
// directories that it came through, so that ".." never asks what is above the root.
type walker struct {
	f       *FS
	goal    goal
	recall  bool    // the cache may be used
	dirs    []found // from the root to where the walk stands
	rest    []string
	links   int
	recalls int   // directories that came from the cache
	last    place // of the path's last part, whether or not it exists
	absent  bool  // with the goal possible: it does not exist
}

// at walks name and calls do with the walk. If either fails and a cached directory may
// be the reason (misled), both are done again without the cache. Errors name op and
// name.
func (f *FS) at(op, name string, g goal, do func(*walker) error) error {
	err := f.try(name, g, do)
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (f *FS) try(name string, g goal, do func(*walker) error) error {
	if !fs.ValidPath(name) || g == parent && name == "." {
		return fs.ErrInvalid
	}
	wire := unquote(name)
	if len(wire) > vfs.MaxPath {
		return vfs.ErrNameTooLong
	}
	w := f.walker(wire, g, true)
	err := w.run(do)
	if err != nil && w.recalls > 0 && misled(err) {
		err = f.walker(wire, g, false).run(do)
	}
	return err
}

// misled reports whether err is tried again without the cache: what was not found, is stale
// or is forbidden may be so only in a directory that is no longer where the cache says.
// After such an error nothing has been changed. Other errors, such as vfs.ErrExist, are
// returned: like results, they may come from the directory that had the path until lately (trusted).
func misled(err error) bool {
	if errors.Is(err, vfs.ErrUnknownOutcome) {
		return false
	}
	switch s, _ := vfs.StatusOf(err); s {
	case vfs.ErrNoEnt, vfs.ErrStale, vfs.ErrBadHandle, vfs.ErrNotDir, vfs.ErrAccess, vfs.ErrPerm:
		return true
	}
	return false
}

func (f *FS) walker(wire string, g goal, recall bool) *walker {
	w := &walker{f: f, goal: g, recall: recall, dirs: []found{{handle: f.root}}, rest: strings.Split(wire, "/")}
	if g == parent {
		n := len(w.rest) - 1
		w.last.name = w.rest[n]
		w.rest = w.rest[:n]
	}
	return w
}

func (w *walker) run(do func(*walker) error) error {
	for len(w.rest) > 0 {
		part := w.rest[0]
		w.rest = w.rest[1:]
		if err := w.step(part); err != nil {
			return err
		}
	}
	if w.goal == parent {
		w.last.dir = w.here().handle
	}
	return do(w)
}

func (w *walker) here() *found { return &w.dirs[len(w.dirs)-1] }

// find returns the object that name leads to, with its attributes.
func (f *FS) find(op, name string, g goal) (at found, err error) {
	err = f.at(op, name, g, func(w *walker) (err error) {
		at, err = w.described()
		return err
	})
	at.name = path.Base(name)
	return at, err
}

// described is the object where the walk has ended, with its attributes.
func (w *walker) described() (at found, err error) {
	at = *w.here()
	if !at.attr.Has(needed) {
		at.attr, err = w.f.fs.GetAttr(w.f.ctx, at.handle, vfs.MaskV3)
	}
	return at, err
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
	f, dir, last := w.f, w.here().handle, len(w.rest) == 0
	if w.recall && (!last || w.goal == directory || w.goal == parent) {
		if h, ok := f.memory.recall(dir, part, f.who); ok {
			w.recalls++
			w.dirs = append(w.dirs, found{handle: h})
			return nil
		}
	}
	if last && w.goal != parent {
		w.last = place{dir, part}
	}
	at, err := f.lookup(dir, part)
	if last && w.goal == possible && errors.Is(err, vfs.ErrNoEnt) {
		w.absent = true
		return nil
	}
	if err != nil {
		return err
	}
	if at.attr.Type == vfs.TypeSymlink && (w.goal != itself || !last) {
		return w.link(at.handle)
	}
	w.dirs = append(w.dirs, at)
	return nil
}

// lookup looks a name up, and remembers it if it is a directory.
func (f *FS) lookup(dir vfs.Handle, name string) (at found, err error) {
	asked := time.Now()
	at.handle, at.attr, _, err = f.fs.Lookup(f.ctx, dir, name)
	if err != nil {
		return at, err
	}
	if !at.attr.Has(needed) {
		if at.attr, err = f.fs.GetAttr(f.ctx, at.handle, vfs.MaskV3); err != nil {
			return at, err
		}
	}
	if at.attr.Type == vfs.TypeDir {
		f.memory.note(dir, name, at.handle, f.who, asked)
	}
	return at, nil
}

// errEscapes says that a symbolic link leads out of the tree.
var errEscapes = fmt.Errorf("symbolic link leads out of the tree: %w", vfs.ErrAccess)

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
