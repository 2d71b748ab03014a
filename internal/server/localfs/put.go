//go:build linux

package localfs

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/identity"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Putter = (*FS)(nil)

// namelessSys is a [Sys] that can make a file without a name, and give it one.
type namelessSys interface {
	// OpenNameless is openat(2) of the directory with O_TMPFILE and O_WRONLY.
	OpenNameless(dirfd int, mode uint32) (fd int, err error)
	// LinkNameless is Linkat of such a file.
	LinkNameless(fd, dirfd int, name string) error
}

// Put implements vfs.Putter by a file that has no name before it has its bytes
// (open(2), O_TMPFILE). Whatever fails before, the file goes with its descriptor.
// With the map of handles it is ErrNotSupp, since a handle waits for the disk there.
func (v *FS) Put(ctx context.Context, dir vfs.Handle, name string, mode uint32, data []byte) (x vfs.Handle, a vfs.Attr, err error) {
	how := vfs.CreateHow{Type: vfs.TypeReg, Mode: vfs.CreateGuarded, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: mode}}
	if err := checkCreate(name, &how); err != nil {
		return x, a, err
	}
	s, ok := v.disk.(namelessSys)
	if !ok || v.mode != HandlesKernel {
		return x, a, vfs.ErrNotSupp
	}
	if err := v.beginChange(ctx, classWrite); err != nil {
		return x, a, err
	}
	defer v.end(classWrite)
	d, err := v.dir(dir)
	if err != nil {
		return x, a, err
	}
	defer v.fds.Unpin(d)
	m := maker{v: v, dir: d, name: name, how: &how}
	fd, err := m.nameless(s)
	if err != nil {
		return x, a, notNoEnt(err)
	}
	if x, err = m.put(s, fd, data); err != nil {
		return x, a, err
	}
	v.attr(&m.st, &a)
	return x, a, nil
}

// nameless makes the file, unless its name is taken. The link would find that out, too,
// but only after the bytes were written.
func (m *maker) nameless(s namelessSys) (fd int, err error) {
	if err := m.v.mayChange(m.dir, &m.dirStat, mayWrite|mayExec); err != nil {
		return -1, err
	}
	fd = -1
	err = m.v.as(func() (err error) {
		if m.st.At(m.dir.FD, m.name) == nil {
			return vfs.ErrExist
		}
		fd, err = s.OpenNameless(m.dir.FD, m.bareMode())
		if errors.Is(err, unix.EISDIR) { // what a kernel says that has no O_TMPFILE
			return vfs.ErrNotSupp
		}
		return linux.Fail("create", err)
	})
	if err != nil && fd >= 0 { // the thread could not get its own identity back
		err = linux.Close(fd, err)
	}
	return fd, err
}

// put gives the file fd, which is closed here, its bytes and its name.
func (m *maker) put(s namelessSys, fd int, data []byte) (x vfs.Handle, err error) {
	v := m.v
	err = linux.Fail("statx", m.st.Of(fd))
	d := &fdcache.Desc{FD: fd, Kind: unix.S_IFREG}
	for off := 0; err == nil && off < len(data); {
		var n int
		if n, err = v.writeAs(d, &m.st, data[off:], int64(off)); n == 0 && err == nil {
			err = io.ErrShortWrite
		}
		off += n
	}
	if err == nil && m.st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		err = linux.Fail("statx", m.st.Of(fd)) // writing may have taken these bits
	}
	if err == nil {
		_, err = m.initialize(fd)
	}
	if err == nil { // before the file has a name, so that less has to be undone
		x, _, err = v.handles.Bind(m.dir, []byte(m.name), fd, &m.st)
	}
	if err != nil {
		return x, linux.Close(fd, linux.Fail("put", err))
	}
	return x, m.link(s, fd)
}

// link gives the file its name, and closes it: a caller that puts whole files has no
// more to write, and was not promised that the file is stable (vfs.Putter). It does so
// under the directory's lock. So the attributes before and after another call's change
// tell that change from this one. And if the file has to be undone, no other file that
// has come to its name is taken for it.
func (m *maker) link(s namelessSys, fd int) error {
	v := m.v
	defer v.unlock(v.lockIn(m.dir, classWrite))
	if err := v.as(func() error { return linux.Fail("link", s.LinkNameless(fd, m.dir.FD, m.name)) }); err != nil {
		if errors.Is(err, identity.ErrLost) { // it may be there
			m.undo()
		}
		return linux.Close(fd, notNoEnt(err))
	}
	err := linux.Close(fd, linux.Fail("statx", m.st.Of(fd)))
	if err != nil {
		m.undo()
	}
	return err
}
