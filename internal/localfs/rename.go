//go:build linux

package localfs

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// Rename implements vfs.FS.
func (v *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	if err := vfs.CheckName(fromName); err != nil {
		return from, to, err
	}
	if err := vfs.CheckName(toName); err != nil {
		return from, to, err
	}
	if err := v.beginChange(ctx, classMeta); err != nil {
		return from, to, err
	}
	defer v.end(classMeta)
	var r renaming
	if r.from, err = v.dir(fromDir, &r.fromStat, mayWrite|mayExec); err != nil {
		return from, to, err
	}
	defer v.fds.unpin(r.from)
	if r.to, err = v.dir(toDir, &r.toStat, mayWrite|mayExec); err != nil {
		return from, to, err
	}
	defer v.fds.unpin(r.to)
	r.fromName, r.toName = fromName, toName
	defer v.unlock2(v.lock2(fromDir, toDir))
	if err := v.stat(r.from, &r.fromStat); err != nil {
		return from, to, err
	}
	if err := v.stat(r.to, &r.toStat); err != nil {
		return from, to, err
	}
	from.Before, to.Before = v.before(&r.fromStat), v.before(&r.toStat)
	defer v.after(r.from, &from.After)
	defer v.after(r.to, &to.After)
	return from, to, v.rename(&r)
}

// renaming is one move of a name.
type renaming struct {
	from, to         *desc
	fromStat, toStat stat
	fromName, toName string
}

func (v *FS) rename(r *renaming) error {
	src, err := v.entry(r.from, r.fromName)
	if err != nil {
		return err
	}
	if err := v.sticky(&r.fromStat, &src.st); err != nil {
		return err
	}
	dst, err := v.entry(r.to, r.toName)
	replaces := err == nil
	if err != nil && err != error(vfs.ErrNoEnt) {
		return err
	}
	if replaces {
		if dst.st.ident() == src.st.ident() && dst.st.dev() == src.st.dev() {
			return v.renameat(r) // two names of one object: the kernel checks, and does nothing
		}
		if err := v.sticky(&r.toStat, &dst.st); err != nil {
			return err
		}
	}
	if src.known {
		err = v.expecting(r.to, r.toName, src.x, func() error { return v.renameat(r) })
	} else {
		err = v.renameat(r)
	}
	if err != nil {
		return err
	}
	if replaces {
		v.lostName(r.to, r.toName, &dst)
	}
	if src.known {
		v.handles.unbind(r.from, r.fromName, src.x, false)
	}
	return nil
}

func (v *FS) renameat(r *renaming) error {
	return v.as(func() error {
		err := v.sys.Renameat(r.from.fd, r.fromName, r.to.fd, r.toName)
		if err == unix.EEXIST {
			return vfs.ErrNotEmpty // what some file systems call it
		}
		return fail("rename", err)
	})
}
