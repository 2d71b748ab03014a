//go:build linux

package localfs

import (
	"context"
	"errors"

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
	if r.from, err = v.dirToChange(fromDir, &r.fromStat, mayWrite|mayExec); err != nil {
		return from, to, err
	}
	defer v.fds.unpin(r.from)
	if r.to, err = v.dirToChange(toDir, &r.toStat, mayWrite|mayExec); err != nil {
		return from, to, err
	}
	defer v.fds.unpin(r.to)
	r.fromName, r.toName = fromName, toName
	if err := v.announce(&r); err != nil {
		return from, to, err
	}
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
	src, dst         entry
	replaces         bool // dst is there
	told             told
}

// announce gives word of the move.
func (v *FS) announce(r *renaming) (err error) {
	if v.mode == HandlesKernel {
		return nil // whom nobody need tell
	}
	if err := v.as(func() error { return v.look(r.from, r.fromName, &r.src) }); err != nil {
		return err
	}
	if r.src.known {
		r.told, err = v.tell(r.to, r.toName, r.src.x)
	}
	return err
}

func (v *FS) rename(r *renaming) (err error) {
	if err = v.as(func() error { return v.inspect(r) }); err == nil && r.src.known && r.src.x != r.told.x {
		// Another object has come to the name since.
		v.untell(r.to, r.toName, r.told)
		r.told, err = v.tell(r.to, r.toName, r.src.x)
	}
	if err == nil {
		err = v.handles.whileMoving(func() error { return v.move(r) })
	}
	if err != nil {
		v.untell(r.to, r.toName, r.told)
	}
	return err
}

// move renames and tells what was lost by it.
func (v *FS) move(r *renaming) error {
	if err := v.renameat(r); err != nil {
		return err
	}
	if r.replaces {
		if r.dst.st.ident() == r.src.st.ident() && r.dst.st.dev() == r.src.st.dev() {
			return nil // two names of one object: nothing has moved
		}
		v.lostName(r.to, r.toName, &r.dst)
	}
	if r.src.known {
		v.handles.unbind(r.from, r.fromName, r.src.x, false)
	}
	return nil
}

// inspect looks at what is to be moved, and at what is in its way.
func (v *FS) inspect(r *renaming) error {
	if err := v.look(r.from, r.fromName, &r.src); err != nil {
		return err
	}
	if err := v.sticky(&r.fromStat, &r.src.st); err != nil {
		return err
	}
	switch err := v.look(r.to, r.toName, &r.dst); {
	case err == nil:
		r.replaces = true
		return v.sticky(&r.toStat, &r.dst.st)
	case errors.Is(err, vfs.ErrNoEnt):
		return nil
	default:
		return err
	}
}

func (v *FS) renameat(r *renaming) error {
	return v.as(func() error {
		err := v.sys.Renameat(r.from.fd, r.fromName, r.to.fd, r.toName)
		if errors.Is(err, unix.EEXIST) {
			return vfs.ErrNotEmpty // what some file systems call it
		}
		return failName("rename", err)
	})
}
