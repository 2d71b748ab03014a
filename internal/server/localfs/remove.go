//go:build linux

package localfs

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
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
	d, err := v.dir(dir)
	if err != nil {
		return wcc, err
	}
	defer v.fds.Unpin(d)
	defer v.unlock(v.lock(d))
	var st linux.Stat
	if err := v.mayChange(d, &st, mayWrite|mayExec); err != nil {
		return wcc, err
	}
	wcc.Before = v.before(&st)
	defer v.after(d, &wcc.After)
	return wcc, v.unlink(d, &st, name, isDir)
}

// unlink takes name out of d and forgets the object if that was its last name.
func (v *FS) unlink(d *fdcache.Desc, dirStat *linux.Stat, name string, isDir bool) error {
	var e entry
	err := v.as(func() error {
		if err := v.look(d, name, &e); err != nil {
			return err
		}
		if err := v.sticky(dirStat, &e.st); err != nil {
			return err
		}
		switch {
		case isDir && !e.st.Is(unix.S_IFDIR):
			return vfs.ErrNotDir
		case !isDir && e.st.Is(unix.S_IFDIR):
			return vfs.ErrIsDir
		}
		flags := 0
		if isDir {
			flags = unix.AT_REMOVEDIR
		}
		return failName("unlink", v.sys.Unlinkat(d.FD, name, flags))
	})
	if err == nil {
		v.lostName(d, name, &e)
	}
	return err
}

// failName is fail for a change of names. What is busy there is a mount point,
// perhaps of another mount namespace, and remains one however long one waits.
func failName(op string, err error) error {
	if errors.Is(err, unix.EBUSY) {
		return vfs.ErrAccess
	}
	return linux.Fail(op, err)
}

// entry is what a name meant before it changed.
type entry struct {
	st    linux.Stat
	x     vfs.Handle
	known bool // x is its handle
}

// look fills e with what name in d is now. It runs as the caller, which must not learn of
// names that it may not look up.
func (v *FS) look(d *fdcache.Desc, name string, e *entry) error {
	if err := v.lookUp(d, name, e); err != nil {
		return err
	}
	e.x, e.known = v.handles.Find(d, name, -1, &e.st)
	return nil
}

// lookUp is look for a call that does not need the handle.
func (v *FS) lookUp(d *fdcache.Desc, name string, e *entry) error {
	if err := e.st.At(d.FD, name); err != nil {
		return linux.Fail("statx", err)
	}
	if v.foreign(&e.st) {
		return vfs.ErrNoEnt
	}
	return nil
}

// lostName says that e is no longer called name in d.
func (v *FS) lostName(d *fdcache.Desc, name string, e *entry) {
	if !e.known {
		return
	}
	gone := e.st.Nlink <= 1 || e.st.Is(unix.S_IFDIR)
	if gone {
		v.fds.Forget(e.x)
	}
	v.handles.Unbind(d, name, e.x, gone)
	v.changed(e.x, &e.st, vfs.ChangeGone, nil)
}
