//go:build linux

package localfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// The modes of what is made without one.
const (
	defaultFileMode = 0o644
	defaultDirMode  = 0o755
	// exclusiveMode is that of a file made by an exclusive create, until the
	// SETATTR that follows.
	exclusiveMode = 0o600
)

// maxRaces bounds how often a create goes back because the name came and went
// in between. Beyond, the caller gets ErrBusy.
const maxRaces = 16

// Create implements vfs.FS.
//
// The verifier of an exclusive create is kept in the seconds of atime and mtime,
// where Linux nfsd keeps it, until the SETATTR that follows replaces them. A
// mode that is asked for is set exactly, whatever the umask of this process;
// but in a directory with a default access control list the list decides.
//
// A caller that would not own the file, since this process cannot act for it, could not
// make that SETATTR. It gets ErrNotSupp for an exclusive create, and its client makes a
// guarded one (RFC 1813, section 3.3.8), which sets the mode at once.
func (v *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	o, w, err := v.create(ctx, dir, name, how)
	if w != nil {
		v.release(w)
	}
	return o.H, o.Attr, o.Dir, err
}

// create also reports whether something was made. If that is a regular file, w is
// the descriptor that made it, pinned, unless there was no room to keep it.
func (v *FS) create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (o vfs.Opened, w *fdcache.Desc, err error) {
	if err := checkCreate(name, how); err != nil {
		return o, nil, err
	}
	if how.Mode == vfs.CreateExclusive && v.cannotAct() && !v.who.Super {
		return o, nil, vfs.ErrNotSupp
	}
	if err := v.beginChange(ctx, classMeta); err != nil {
		return o, nil, err
	}
	defer v.end(classMeta)
	d, err := v.dir(dir)
	if err != nil {
		return o, nil, err
	}
	defer v.fds.Unpin(d)
	m := maker{v: v, dir: d, name: name, how: how}
	x, made, err := m.locked(&o.Dir)
	if err == nil {
		err = v.handles.WaitStable(m.mark)
		if err != nil && made {
			i := v.lock(m.dir)
			m.undo()
			v.unlock(i)
		}
	}
	if err != nil {
		if m.w != nil {
			v.fds.Unpin(m.w)
		}
		return o, nil, err
	}
	o.H, o.Created = x, made
	v.attr(&m.st, &o.Attr)
	return o, m.w, nil
}

func checkCreate(name string, how *vfs.CreateHow) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	return how.Check()
}

// maker makes one object.
type maker struct {
	v       *FS
	dir     *fdcache.Desc
	dirStat linux.Stat
	name    string
	how     *vfs.CreateHow
	st      linux.Stat    // of the object
	mark    handlemap.LSN // when its handle is good
	w       *fdcache.Desc // of the file that was made, if there is room for it
}

// locked makes or takes the object under the directory's lock. The handle is waited for
// after that, so that calls wait for the disk together.
func (m *maker) locked(wcc *vfs.WCC) (x vfs.Handle, made bool, err error) {
	v := m.v
	defer v.unlock(v.lock(m.dir))
	if err := v.mayChange(m.dir, &m.dirStat, mayExec); err != nil {
		return x, false, err
	}
	wcc.Before = v.before(&m.dirStat)
	defer v.after(m.dir, &wcc.After)
	for range maxRaces {
		if x, made, err = m.try(); !errors.Is(err, vfs.ErrNoEnt) {
			return x, made, err
		}
		if err := v.stat(m.dir, &m.dirStat); err != nil {
			return x, false, err
		}
	}
	return x, false, fmt.Errorf("localfs: create: the name comes and goes: %w", vfs.ErrBusy)
}

// try makes the object or, as how allows, takes the one that is there. ErrNoEnt
// says that it was there and is no longer.
func (m *maker) try() (x vfs.Handle, made bool, err error) {
	if !m.v.who.Switched {
		err = m.v.permits(m.dir, &m.dirStat, mayWrite|mayExec)
	}
	if err == nil {
		var fd int
		if fd, err = m.make(); err == nil {
			x, err = m.finish(fd)
			return x, err == nil, err
		}
	}
	if m.how.Mode == vfs.CreateGuarded || !errors.Is(err, vfs.ErrExist) && !errors.Is(err, vfs.ErrAccess) {
		return x, false, notNoEnt(err)
	}
	x, found := m.existing()
	if errors.Is(found, vfs.ErrNoEnt) && errors.Is(err, vfs.ErrAccess) {
		found = err
	}
	return x, false, found
}

// notNoEnt maps ErrNoEnt of the directory to ErrStale, so that it does not pass for
// ErrNoEnt of the name.
func notNoEnt(err error) error {
	if errors.Is(err, vfs.ErrNoEnt) {
		return vfs.ErrStale
	}
	return err
}

// make makes the bare object and opens it: a regular file for writing, anything
// else as a reference.
func (m *maker) make() (fd int, err error) {
	s, name, mode := m.v.sys, m.name, m.bareMode()
	fd = -1
	err = m.v.as(func() (err error) {
		switch m.how.Type {
		case vfs.TypeReg:
			fd, err = s.Openat(m.dir.FD, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, mode)
			return linux.Fail("create", err)
		case vfs.TypeDir:
			err = s.Mkdirat(m.dir.FD, name, mode&01777)
		case vfs.TypeSymlink:
			err = s.Symlinkat(m.how.Target, m.dir.FD, name)
		case vfs.TypeFIFO:
			err = s.Mknodat(m.dir.FD, name, unix.S_IFIFO|mode, 0)
		case vfs.TypeSocket:
			err = s.Mknodat(m.dir.FD, name, unix.S_IFSOCK|mode, 0)
		case vfs.TypeBlock:
			err = s.Mknodat(m.dir.FD, name, unix.S_IFBLK|mode, m.dev())
		case vfs.TypeChar:
			err = s.Mknodat(m.dir.FD, name, unix.S_IFCHR|mode, m.dev())
		}
		if err != nil {
			return linux.Fail("create", err)
		}
		fd, err = linux.OpenPath(m.dir.FD, name, 0)
		return linux.Fail("open", err)
	})
	return fd, err
}

func (m *maker) dev() uint64 {
	return unix.Mkdev(uint32(m.how.Rdev>>32), uint32(m.how.Rdev))
}

func (m *maker) mode() uint32 {
	switch {
	case m.how.Mode == vfs.CreateExclusive:
		return exclusiveMode
	case m.how.Set.Valid&vfs.MaskMode != 0:
		return m.how.Set.Mode & 07777
	case m.how.Type == vfs.TypeDir:
		return defaultDirMode
	}
	return defaultFileMode
}

// bareMode is the mode that the object is made with. If the process cannot act for the
// caller, set-id bits wait until the object's group is known.
func (m *maker) bareMode() uint32 {
	if m.v.cannotAct() {
		return m.mode() &^ setIDs
	}
	return m.mode()
}

// finish gives the new object fd, which is closed here, its attributes and its
// handle. If that fails the object is removed again.
func (m *maker) finish(fd int) (x vfs.Handle, err error) {
	v := m.v
	if err := m.st.Of(fd); err != nil {
		return x, linux.Close(fd, linux.Fail("statx", err))
	}
	// Another caller may have put something else there, if it is a directory's or
	// a link's name that was opened again.
	if linux.TypeOf(m.st.Mode) != m.how.Type {
		return x, linux.Close(fd, vfs.ErrStale)
	}
	dressed, err := m.initialize(fd)
	if err == nil && dressed {
		err = linux.Fail("statx", m.st.Of(fd))
	}
	if err == nil {
		x, m.mark, err = v.handles.Bind(m.dir, []byte(m.name), fd, &m.st)
	}
	if err != nil {
		m.undo()
		return x, linux.Close(fd, err)
	}
	u := fdcache.Path
	if m.how.Type == vfs.TypeReg {
		u = fdcache.Write
	}
	// The descriptor is kept for the call to come. If there is no room, that
	// one will open its own: this one has succeeded.
	d, err := v.fds.Put(x, u, fd, m.st.Mode&unix.S_IFMT)
	if err != nil {
		return x, nil
	}
	if noteStripe(d, &m.st); u == fdcache.Write {
		m.w = d
	} else {
		v.fds.Unpin(d)
	}
	return x, nil
}

// initialize sets the initial attributes that the system call that made the object has not,
// if there are such.
func (m *maker) initialize(fd int) (dressed bool, err error) {
	v := m.v
	d := &fdcache.Desc{FD: fd, Kind: m.st.Mode & unix.S_IFMT}
	if m.how.Mode == vfs.CreateExclusive {
		asec, msec := exclusiveTimes(m.how.Verf)
		return true, v.as(func() error { return linux.Fail("utimensat", v.sys.Futimens(fd, asec, 0, msec, 0)) })
	}
	set := m.how.Set
	if err := v.setOwner(d, &m.st, &set); err != nil {
		return true, err
	}
	if set.Valid&vfs.MaskSize != 0 && set.Size != 0 && d.Kind == unix.S_IFREG {
		if err := v.truncate(d, set.Size); err != nil {
			return true, err
		}
	}
	dressed = set.Valid&^vfs.MaskMode != 0
	if mode := m.v.settable(m.mode()|m.inherited(), &m.st, &set); d.Kind != unix.S_IFLNK && m.modeDiffers(mode) {
		dressed = true
		if err := v.as(func() error { return linux.Fail("chmod", v.sys.Fchmod(fd, mode)) }); err != nil {
			return true, err
		}
	}
	return dressed, v.setTimes(d, &m.st, &set)
}

// inherited is the set-gid bit that a directory has from the one it is in.
func (m *maker) inherited() uint32 {
	if m.how.Type == vfs.TypeDir {
		return m.st.Perm() & unix.S_ISGID
	}
	return 0
}

// modeDiffers reports whether the mode is still to be set: the umask has cut it,
// or a change of owner or size has. With a default list on the directory no umask has
// been at work, and what is missing is missing on purpose.
func (m *maker) modeDiffers(mode uint32) bool {
	if m.st.Perm() == mode && m.how.Set.Valid&(vfs.MaskUID|vfs.MaskGID|vfs.MaskSize) == 0 {
		return false
	}
	n, err := unix.Getxattr(linux.ProcPath(m.dir.FD), linux.XattrDefault, nil)
	return err != nil || n == 0
}

// undo removes what was made, if it is still what the name means.
func (m *maker) undo() {
	var now linux.Stat
	if now.At(m.dir.FD, m.name) != nil || now.Ident() != m.st.Ident() {
		return
	}
	flags := 0
	if m.how.Type == vfs.TypeDir {
		flags = unix.AT_REMOVEDIR
	}
	if err := m.v.as(func() error { return m.v.sys.Unlinkat(m.dir.FD, m.name, flags) }); err != nil {
		m.v.o.Report(fmt.Errorf("localfs: what a failed create left behind stays: %q: %w", m.name, linux.Fail("unlink", err)))
	}
}

func (m *maker) existing() (x vfs.Handle, err error) {
	v := m.v
	if err := v.permits(m.dir, &m.dirStat, mayExec); err != nil {
		return x, err
	}
	fd, err := linux.OpenPath(m.dir.FD, m.name, 0)
	if err != nil {
		return x, linux.Fail("open", err)
	}
	x, m.mark, err = v.identify(m.dir, m.name, fd, &m.st)
	if err == nil && !m.st.Is(unix.S_IFREG) {
		err = vfs.ErrExist
	}
	if err == nil && m.how.Mode == vfs.CreateExclusive && !m.repeated() {
		err = vfs.ErrExist
	}
	if err != nil {
		return x, linux.Close(fd, err)
	}
	d, err := v.fds.Put(x, fdcache.Path, fd, m.st.Mode&unix.S_IFMT)
	if err != nil {
		return x, err
	}
	defer v.fds.Unpin(d)
	if m.how.Mode == vfs.CreateUnchecked && m.how.Set.Valid&vfs.MaskSize != 0 {
		if err := v.mayWriteData(d, &m.st); err != nil {
			return x, err
		}
		if err := v.setSize(d, m.how.Set.Size); err != nil {
			return x, err
		}
		return x, v.stat(d, &m.st)
	}
	return x, nil
}

// repeated reports whether the file that is there was made by an exclusive
// create with the same verifier.
func (m *maker) repeated() bool {
	asec, msec := exclusiveTimes(m.how.Verf)
	return m.st.Size == 0 && linux.TimeOf(m.st.Atime).Equal(time.Unix(asec, 0)) && linux.TimeOf(m.st.Mtime).Equal(time.Unix(msec, 0))
}

// exclusiveTimes are the atime and mtime that stand for a verifier. The highest
// bits are left out, as some file systems have no times before 1970.
func exclusiveTimes(verf vfs.Verifier) (asec, msec int64) {
	const mask = 0x7fffffff
	return int64(binary.BigEndian.Uint32(verf[:4]) & mask), int64(binary.BigEndian.Uint32(verf[4:]) & mask)
}
