//go:build linux

package localfs

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Lookup implements vfs.FS.
func (v *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (x vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	if name != ".." {
		if err := vfs.CheckName(name); err != nil {
			return x, attr, dirAttr, err
		}
	}
	if err := v.begin(ctx, classMeta); err != nil {
		return x, attr, dirAttr, err
	}
	defer v.end(classMeta)
	var st linux.Stat
	d, err := v.dirFor(dir, &st, mayExec)
	if err != nil {
		return x, attr, dirAttr, err
	}
	defer v.fds.Unpin(d)
	v.attr(&st, &dirAttr)
	if name == ".." {
		x, attr, err = v.parent(d, dirAttr)
	} else if o := v.childByHandle(d, name, &st); o != nil {
		x = o.H
		v.attr(&st, &attr)
		v.fds.Unpin(o)
	} else {
		x, attr, err = v.child(d, name)
	}
	return x, attr, dirAttr, err
}

// childByHandle looks name up in d by way of the kernel's handle, fills st with the
// attributes and returns the pinned descriptor. Most names are
// looked up again and again, and their objects are open; that takes neither an open nor
// a close. Where this way is closed, or leads to nothing, it returns nil: child looks
// again, and finds the right error.
func (v *FS) childByHandle(d *fdcache.Desc, name string, st *linux.Stat) *fdcache.Desc {
	var buf [vfs.MaxName + 1]byte
	n := copy(buf[:], name)
	k, ok := v.handles.(*kernelHandles)
	if !ok || n > vfs.MaxName {
		return nil
	}
	x, err := k.of(d.FD, &buf[0], 0)
	if err != nil {
		return nil
	}
	o := v.fds.GetAny(x)
	if o == nil {
		// The handle comes from the kernel: there is nothing to confirm.
		fd, err := k.reach(x, st)
		if err != nil {
			return nil
		}
		if o, err = v.fds.Put(x, fdcache.Path, fd, st.Mode&unix.S_IFMT); err != nil {
			return nil
		}
		noteStripe(o, st)
	} else if st.Of(o.FD) != nil {
		st.Nlink = 0
	}
	if st.Nlink == 0 || v.foreign(st) {
		v.fds.Unpin(o)
		return nil
	}
	return o
}

// child looks name up in d and keeps the object open for the calls to come.
func (v *FS) child(d *fdcache.Desc, name string) (x vfs.Handle, attr vfs.Attr, err error) {
	fd, err := linux.OpenPath(d.FD, name, 0)
	if err != nil {
		return x, attr, linux.Fail("lookup", err)
	}
	var st linux.Stat
	x, m, err := v.identify(d, name, fd, &st)
	if err == nil {
		err = v.handles.WaitStable(m)
	}
	if err != nil {
		return x, attr, linux.Close(fd, err)
	}
	if o, err := v.fds.Put(x, fdcache.Path, fd, st.Mode&unix.S_IFMT); err == nil {
		noteStripe(o, &st)
		v.fds.Unpin(o)
	}
	v.attr(&st, &attr)
	return x, attr, nil
}

// identify fills st and returns the handle of fd, which was found as name in d. The handle
// must not leave before WaitStable.
func (v *FS) identify(d *fdcache.Desc, name string, fd int, st *linux.Stat) (x vfs.Handle, m handlemap.LSN, err error) {
	if err := st.Of(fd); err != nil {
		return x, 0, linux.Fail("statx", err)
	}
	if v.foreign(st) {
		v.hide(name, st)
		return x, 0, vfs.ErrNoEnt
	}
	return v.handles.Bind(d, []byte(name), fd, st)
}

// parent is the directory above d, but no higher than the root.
func (v *FS) parent(d *fdcache.Desc, own vfs.Attr) (x vfs.Handle, attr vfs.Attr, err error) {
	if d.H == v.root {
		return v.root, own, nil
	}
	fd, err := linux.OpenPath(d.FD, "..", unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return x, attr, vfs.ErrStale // moved out of what is bound into the tree
	}
	if err != nil {
		return x, attr, linux.Fail("lookup ..", err)
	}
	defer func() { err = linux.Close(fd, err) }()
	var st linux.Stat
	if err := st.Of(fd); err != nil {
		return x, attr, linux.Fail("statx", err)
	}
	// d was in the tree a moment ago; it may have been moved out since.
	if in, err := v.beneath(&fdcache.Desc{FD: fd}); err != nil || !in {
		return x, attr, orStale(err)
	}
	x, ok := v.handles.Find(d, "..", fd, &st)
	if !ok {
		return x, attr, vfs.ErrStale
	}
	v.attr(&st, &attr)
	return x, attr, nil
}

// orStale is err, or ErrStale if there is none.
func orStale(err error) error {
	if err == nil {
		return vfs.ErrStale
	}
	return err
}
