//go:build linux

package localfs

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/identity"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
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
	if r.from, err = v.dir(fromDir); err != nil {
		return from, to, err
	}
	defer v.fds.Unpin(r.from)
	if r.to = r.from; toDir != fromDir {
		if r.to, err = v.dir(toDir); err != nil {
			return from, to, err
		}
		defer v.fds.Unpin(r.to)
	}
	r.fromName, r.toName = fromName, toName
	if err := v.announce(&r); err != nil {
		return from, to, err
	}
	if v.copiesUp && r.src.known {
		if r.held, err = v.object(r.src.x); err != nil {
			v.unexpect(r.to, toName, r.expected)
			return from, to, err
		}
		defer v.fds.Unpin(r.held)
	}
	defer v.unlock2(v.lock2(r.from, r.to))
	if err := v.mayRename(&r); err != nil {
		v.unexpect(r.to, toName, r.expected)
		return from, to, err
	}
	from.Before, to.Before = v.before(&r.fromStat), v.before(&r.toStat)
	err = v.rename(&r)
	v.after(r.from, &from.After)
	if to.After = from.After; r.to != r.from {
		v.after(r.to, &to.After)
	}
	return from, to, err
}

// renaming is one move of a name.
type renaming struct {
	from, to         *fdcache.Desc // one and the same if the name stays in its directory
	fromStat, toStat linux.Stat
	fromName, toName string
	src, dst         entry
	looked           bool // src was looked at
	replaces         bool // dst is there
	expected         expectation
	held             *fdcache.Desc // src, where what is moved may come to look like another
}

func (v *FS) mayRename(r *renaming) error {
	if err := v.mayChange(r.from, &r.fromStat, mayWrite|mayExec); err != nil {
		return err
	}
	if r.to == r.from {
		r.toStat = r.fromStat
		return nil
	}
	return v.mayChange(r.to, &r.toStat, mayWrite|mayExec)
}

// announce notes the move in the map. What stands against the move is for the move itself
// to say; only a caller that may not change names is turned away before anything is noted.
func (v *FS) announce(r *renaming) (err error) {
	if v.mode == HandlesKernel {
		return nil // which a rename does not concern
	}
	if !v.who.Switched {
		if err := v.mayRename(r); err != nil {
			return err
		}
	}
	var found error
	err = v.as(func() error {
		found = v.look(r.from, r.fromName, &r.src)
		return nil
	})
	if err == nil && found == nil && r.src.known {
		r.expected, err = v.expect(r.to, r.toName, r.src.x)
	}
	return err
}

// errOther says that another object has come to the name since the move of the first one
// was announced.
var errOther = fmt.Errorf("localfs: rename: what has the name changes: %w", vfs.ErrBusy)

func (v *FS) rename(r *renaming) (err error) {
	for range maxRaces {
		err = v.handles.WhileMoving(func() error { return v.move(r) })
		if !errors.Is(err, errOther) || errors.Is(err, identity.ErrLost) {
			break
		}
		v.unexpect(r.to, r.toName, r.expected)
		var e error
		if r.expected, e = v.expect(r.to, r.toName, r.src.x); e != nil {
			err = e
			break
		}
	}
	if err != nil {
		v.unexpect(r.to, r.toName, r.expected)
	}
	return err
}

// move renames, and forgets what lost its name by it.
func (v *FS) move(r *renaming) error {
	if err := v.as(func() error { return v.renameAs(r) }); err != nil {
		return err
	}
	if r.replaces {
		if r.dst.st.Ident() == r.src.st.Ident() && r.dst.st.Dev() == r.src.st.Dev() {
			return nil // two names of one object: nothing has moved
		}
		v.lostName(r.to, r.toName, &r.dst)
	}
	// Until both directories are on disk, a power failure may bring the old name back. In
	// its directory the object is searched for; in another one it is only found at a place
	// that the map still knows.
	if r.src.known && r.from == r.to {
		v.handles.Unbind(r.from, r.fromName, r.src.x, false)
	}
	if r.held != nil && r.held.H == r.src.x {
		return v.touched(r.held)
	}
	return nil
}

// noReplaceSys is a [Sys] that can move a name to where none is. With one that
// cannot, what is in the way is looked for each time.
type noReplaceSys interface {
	// RenameatNoReplace is Renameat where nothing is replaced: EEXIST.
	RenameatNoReplace(fromfd int, from string, tofd int, to string) error
}

// renameAs renames, as the caller. Where nothing is replaced, nothing need be looked at
// beforehand, but for the sake of the map and where the kernel does not judge. What is
// refused then is looked at, and tried again.
func (v *FS) renameAs(r *renaming) error {
	r.looked, r.replaces = false, false
	if v.mode == HandlesMap || v.rootMount == 0 || !v.who.Switched && r.fromStat.Mode&unix.S_ISVTX != 0 {
		if err := v.inspect(r); err != nil {
			return err
		}
	}
	s, ok := v.disk.(noReplaceSys)
	if ok && s.RenameatNoReplace(r.from.FD, r.fromName, r.to.FD, r.toName) == nil {
		return nil
	}
	if !r.looked {
		if err := v.inspect(r); err != nil {
			return err
		}
	}
	return v.replace(r)
}

// inspect looks at what is to be moved. Its handle need not be known if it is the
// kernel's, which the move does not touch.
func (v *FS) inspect(r *renaming) (err error) {
	if v.mode == HandlesKernel {
		err = v.lookUp(r.from, r.fromName, &r.src)
	} else {
		err = v.look(r.from, r.fromName, &r.src)
	}
	if err != nil {
		return err
	}
	if r.src.known && r.src.x != r.expected.x {
		return errOther
	}
	r.looked = true
	return v.sticky(&r.fromStat, &r.src.st)
}

// replace renames, and looks at what is in the way.
func (v *FS) replace(r *renaming) error {
	switch err := v.look(r.to, r.toName, &r.dst); {
	case err == nil:
		r.replaces = true
		if err := v.sticky(&r.toStat, &r.dst.st); err != nil {
			return err
		}
	case !errors.Is(err, vfs.ErrNoEnt):
		return err
	}
	err := v.sys.Renameat(r.from.FD, r.fromName, r.to.FD, r.toName)
	if errors.Is(err, unix.EEXIST) {
		return vfs.ErrNotEmpty // what some file systems call it
	}
	return failName("rename", err)
}
