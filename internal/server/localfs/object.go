//go:build linux

package localfs

import (
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// object returns a pinned descriptor of x, which is good for a reference: an O_PATH
// one if nothing more is open. A directory lies in the tree.
func (h *host) object(x vfs.Handle) (*fdcache.Desc, error) {
	d := h.fds.GetAny(x)
	if d == nil {
		var st linux.Stat
		fd, err := h.handles.Open(x, &st)
		if err != nil {
			return nil, err
		}
		if d, err = h.fds.Put(x, fdcache.Path, fd, st.Mode&unix.S_IFMT); err != nil {
			return nil, err
		}
		noteStripe(d, &st)
	}
	if err := h.inTree(d); err != nil {
		h.fds.Unpin(d)
		return nil, err
	}
	return d, nil
}

// inTree returns ErrStale if d is a directory that lies outside, now. Of other
// objects it says nothing: they have no one way up.
func (h *host) inTree(d *fdcache.Desc) error {
	if d.Kind != unix.S_IFDIR || d.H == h.root {
		return nil
	}
	in, err := h.beneath(d)
	if err == nil && !in {
		h.fds.Forget(d.H)
		return vfs.ErrStale
	}
	return err
}

func (h *host) dir(x vfs.Handle) (*fdcache.Desc, error) {
	d, err := h.object(x)
	if err == nil && d.Kind != unix.S_IFDIR {
		h.fds.Unpin(d)
		return nil, vfs.ErrNotDir
	}
	return d, err
}

// stat fills st. An object that has lost its last name is stale, though the
// descriptor still holds it.
func (h *host) stat(d *fdcache.Desc, st *linux.Stat) error {
	if err := st.Of(d.FD); err != nil {
		return linux.Fail("statx", err)
	}
	if st.Nlink == 0 {
		return h.gone(d.H)
	}
	return nil
}

// touched notes that o was changed. A call that holds a lock does not wait until the note
// is stable: a crash may leave a handle that is stale.
func (h *host) touched(o *fdcache.Desc) error {
	if !h.copiesUp {
		return nil
	}
	_, err := h.handles.Touched(o)
	return err
}

// gone forgets x, which has lost its last name, and is ErrStale: from now on, for ever.
func (h *host) gone(x vfs.Handle) error {
	h.fds.Forget(x)
	h.handles.Lost(x)
	return vfs.ErrStale
}

// regular returns a pinned descriptor of x if that is a regular file.
func (h *host) regular(x vfs.Handle) (*fdcache.Desc, error) {
	d, err := h.object(x)
	if err != nil {
		return nil, err
	}
	switch d.Kind {
	case unix.S_IFREG:
		return d, nil
	case unix.S_IFDIR:
		err = vfs.ErrIsDir
	default:
		err = vfs.ErrInval
	}
	h.fds.Unpin(d)
	return nil, err
}

// data returns the pinned descriptor of the regular file x, for reading or for
// writing. Whether the caller may is for the caller to check.
func (v *FS) data(x vfs.Handle, u fdcache.Use) (*fdcache.Desc, error) {
	if d := v.fds.Get(x, u); d != nil {
		return d, nil
	}
	o, err := v.regular(x)
	if err != nil {
		return nil, err
	}
	defer v.fds.Unpin(o)
	flags := unix.O_RDONLY
	if u == fdcache.Write {
		flags = unix.O_WRONLY
	}
	var fd int
	if k, ok := v.handles.(*kernelHandles); ok {
		fd, err = k.reopen(o, flags)
	} else {
		fd, err = linux.Reopen(o.FD, flags)
	}
	if err != nil {
		return nil, linux.Fail("open", err)
	}
	if u == fdcache.Write && v.copiesUp {
		m, err := v.handles.Touched(o)
		if err == nil {
			err = v.handles.WaitStable(m)
		}
		if err != nil {
			return nil, linux.Close(fd, err)
		}
	}
	d, err := v.fds.Put(x, u, fd, o.Kind)
	if err == nil {
		d.Stripe.Store(o.Stripe.Load())
	}
	return d, err
}

// expectation is a name that an object is about to get, beside those that it has. The map
// has it on disk before the change: should the host fall in between, the handle finds the
// object by one of its names. It is written before any lock is taken, so that calls wait
// for the disk together.
type expectation struct {
	x    vfs.Handle
	news bool // the map did not have it
}

// expect notes that x is about to be called name in dir as well.
func (v *FS) expect(dir *fdcache.Desc, name string, x vfs.Handle) (expectation, error) {
	m, fresh, err := v.handles.Expect(dir, name, x)
	if err == nil {
		err = v.handles.WaitStable(m)
	}
	return expectation{x, fresh}, err
}

// unexpect takes back an expectation that has not come to pass.
func (v *FS) unexpect(dir *fdcache.Desc, name string, t expectation) {
	if t.news {
		v.handles.Unbind(dir, name, t.x, false)
	}
}
