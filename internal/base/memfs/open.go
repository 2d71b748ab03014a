package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open regular file. It keeps its inode alive.
type file struct {
	fs     *FS
	n      *inode
	h      vfs.Handle
	access vfs.Share
	closed bool // guarded by tree.mu
}

var (
	_ vfs.File       = (*file)(nil)
	_ vfs.HoleSeeker = (*file)(nil)
)

// Open opens a regular file. Rights are checked only here, and the caller that creates a file
// can use it whatever its mode: both as in open(2). There are no share reservations and no
// delegations.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	start := at.H
	if at.Name != "" {
		start = at.Dir
	}
	if err := f.begin(ctx, "open", start); err != nil {
		return nil, vfs.Opened{}, err
	}
	if err := checkOpen(at, how); err != nil {
		return nil, vfs.Opened{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, opened, err := f.locate(at, how)
	if err != nil {
		return nil, vfs.Opened{}, err
	}
	if err := f.mayOpen(n, how, opened.Created); err != nil {
		return nil, vfs.Opened{}, err
	}
	if how.Trunc && n.content.size > 0 {
		f.resize(n, 0, f.now())
	}
	n.opens++
	f.opens++
	opened.H, opened.Attr = f.handle(n), f.attr(n)
	return &file{fs: f, n: n, h: opened.H, access: how.Access}, opened, nil
}

func checkOpen(at vfs.At, how *vfs.OpenHow) error {
	const both = vfs.ShareRead | vfs.ShareWrite
	switch {
	case how.Access == 0 || how.Access&^both != 0:
		return vfs.ErrInval
	case how.Deny != 0:
		return vfs.ErrNotSupp
	case how.Create != nil && (at.Name == "" || how.Create.Type != vfs.TypeReg):
		return vfs.ErrInval
	}
	return nil
}

// locate finds, or makes, the object of at.
func (f *FS) locate(at vfs.At, how *vfs.OpenHow) (n *inode, opened vfs.Opened, err error) {
	if at.Name == "" {
		n, err = f.get(at.H)
		return n, opened, err
	}
	d, err := f.getDir(at.Dir)
	if err != nil {
		return nil, opened, err
	}
	if how.Create == nil {
		n, err = f.find(d, at.Name)
		return n, opened, err
	}
	pre := d.pre()
	n, opened.Created, err = f.create(d, at.Name, how.Create)
	opened.Dir = f.wcc(d, pre)
	return n, opened, err
}

func (f *FS) mayOpen(n *inode, how *vfs.OpenHow, created bool) error {
	switch {
	case n.typ == vfs.TypeDir:
		return vfs.ErrIsDir
	case n.typ != vfs.TypeReg:
		return vfs.ErrInval
	case created:
		return nil
	}
	var want uint32
	if how.Access&vfs.ShareRead != 0 {
		want |= mayRead
	}
	if how.Access&vfs.ShareWrite != 0 || how.Trunc {
		want |= mayWrite
	}
	return f.may(n, want)
}

// use returns an error if the file was not opened for that access. The caller holds mu.
func (o *file) use(access vfs.Share) error {
	switch {
	case o.closed:
		return vfs.ErrInval
	case o.n.dead:
		return vfs.ErrStale
	case o.access&access != access:
		return vfs.ErrAccess
	}
	return nil
}

// Close closes the file. A file without a name is removed with its last close.
func (o *file) Close(ctx context.Context) error {
	hook := o.fs.begin(context.WithoutCancel(ctx), "close", o.h)
	o.fs.mu.Lock()
	defer o.fs.mu.Unlock()
	if o.closed {
		return vfs.ErrInval
	}
	o.closed = true
	o.n.opens--
	o.fs.opens--
	o.fs.release(o.n)
	return hook
}
