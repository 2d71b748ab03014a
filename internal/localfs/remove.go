//go:build linux

package localfs

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// Remove implements vfs.FS.
func (v *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (wcc vfs.WCC, err error) {
	if err := vfs.CheckName(name); err != nil {
		return wcc, err
	}
	if err := v.beginChange(ctx, classMeta); err != nil {
		return wcc, err
	}
	defer v.end(classMeta)
	var st stat
	d, err := v.dir(dir, &st, mayWrite|mayExec)
	if err != nil {
		return wcc, err
	}
	defer v.fds.unpin(d)
	defer v.unlock(v.lock(dir))
	if err := v.stat(d, &st); err != nil {
		return wcc, err
	}
	wcc.Before = v.before(&st)
	defer v.after(d, &wcc.After)
	return wcc, v.unlink(d, &st, name, isDir)
}

// unlink takes name out of d and forgets the object if that was its last name.
func (v *FS) unlink(d *desc, dirStat *stat, name string, isDir bool) error {
	e, err := v.entry(d, name)
	if err != nil {
		return err
	}
	if err := v.sticky(dirStat, &e.st); err != nil {
		return err
	}
	switch {
	case isDir && !e.st.is(unix.S_IFDIR):
		return vfs.ErrNotDir
	case !isDir && e.st.is(unix.S_IFDIR):
		return vfs.ErrIsDir
	}
	flags := 0
	if isDir {
		flags = unix.AT_REMOVEDIR
	}
	err = v.as(func() error { return fail("unlink", v.sys.Unlinkat(d.fd, name, flags)) })
	if err != nil {
		return err
	}
	v.lostName(d, name, &e)
	return nil
}

// entry is what a name meant before it changed.
type entry struct {
	st    stat
	x     vfs.Handle
	known bool // x is its handle
}

// entry looks at name in d. The right to look is checked by what follows.
func (v *FS) entry(d *desc, name string) (e entry, err error) {
	if err := e.st.statAt(d.fd, name); err != nil {
		return e, fail("statx", err)
	}
	if v.foreign(&e.st) {
		return e, vfs.ErrNoEnt
	}
	e.x, e.known = v.handles.find(d, name, -1, &e.st)
	return e, nil
}

// lostName says that e is no longer called name in d.
func (v *FS) lostName(d *desc, name string, e *entry) {
	if !e.known {
		return
	}
	gone := e.st.Nlink <= 1 || e.st.is(unix.S_IFDIR)
	if gone {
		v.fds.forget(e.x)
	}
	v.handles.unbind(d, name, e.x, gone)
}
