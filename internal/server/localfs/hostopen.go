//go:build linux

package localfs

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/internal/server/localfs/mounts"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.HostOpener = (*FS)(nil)

// OpenHost implements vfs.HostOpener. The checks are those of every ReadAt and
// WriteAt. What the kernel makes of a writer's identity (writer.go) it makes of the
// other process from here on:
//
//   - Set-uid and set-gid bits stay if that is root, so a file with such is not
//     opened to be written. Nor is it, or one with capabilities, opened unsealed:
//     it could be run by the descriptor, also where no path leads to it.
//   - Where all callers are the one user that this process is, others cannot be
//     held to what that one may: nothing is opened for them unsealed.
//   - Quotas and reserved blocks need no thought: blocks are charged to the owner
//     of the file whatever user writes, and one that may exceed them may do so anyway.
//
// What is stable of what it writes, see the package.
func (v *FS) OpenHost(ctx context.Context, x vfs.Handle, how *vfs.HostOpen) (*os.File, vfs.Attr, error) {
	var a vfs.Attr
	writes := how.Access&vfs.ShareWrite != 0
	switch {
	case how.Access == 0 || how.Access&^(vfs.ShareRead|vfs.ShareWrite) != 0 || how.Sealed && writes:
		return nil, a, vfs.ErrInval
	case writes && v.o.ReadOnly:
		return nil, a, vfs.ErrROFS
	case !how.Sealed && (v.o.ReadOnly || !how.Trusted && !v.creds.SpeaksFor(&how.Peer)):
		return nil, a, vfs.ErrNotSupp // by the bare descriptor the peer could do more than the caller may
	}
	if err := v.begin(ctx, classMeta); err != nil {
		return nil, a, err
	}
	defer v.end(classMeta)
	d, err := v.regular(x)
	if err != nil {
		return nil, a, err
	}
	defer v.fds.Unpin(d)
	var st linux.Stat
	if err := v.stat(d, &st); err != nil {
		return nil, a, err
	}
	mount := st.Mnt_id
	fd, err := v.openAnew(d, &st, how)
	if err != nil {
		return nil, a, err
	}
	if err := v.mayPass(d, fd, how, &st); err != nil {
		return nil, a, linux.Close(fd, err)
	}
	if writes {
		v.locks.lent.Store(true)
		v.unlock(v.lock(d)) // and a call that has looked at x before that has ended
	}
	v.watches.Judged(d.H, d.FD, &st)
	st.Mnt_id = mount // and not the sealed one's
	v.attr(&st, &a)
	return os.NewFile(uintptr(fd), "nfsbox file"), a, nil
}

// mayPass is the check of what fd, which was opened of d, may be used for, and
// fills st. It also makes calls by fd wait, as those who get it expect.
func (v *FS) mayPass(d *fdcache.Desc, fd int, how *vfs.HostOpen, st *linux.Stat) error {
	if err := st.Of(fd); err != nil {
		return linux.Fail("statx", err)
	}
	if st.Nlink == 0 {
		return v.gone(d.H)
	}
	if how.Access&vfs.ShareRead != 0 {
		if err := v.mayReadData(d, st); err != nil {
			return err
		}
	}
	if how.Access&vfs.ShareWrite != 0 {
		if err := v.mayWriteData(d, st); err != nil {
			return err
		}
	}
	if !how.Sealed && raises(d, st) {
		return vfs.ErrNotSupp
	}
	return linux.Fail("fcntl", unix.SetNonblock(fd, false))
}

// xattrCapability are the capabilities that a file gives to a process that runs it.
const xattrCapability = "security.capability"

// raises reports whether d, which st describes, gives a process that runs it
// more than it has.
func raises(d *fdcache.Desc, st *linux.Stat) bool {
	return st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 || getxattr(d, xattrCapability) == nil
}

// openAnew opens what d refers to and st describes: with a description of its own, since offset,
// flags, locks and the errors of syncs belong to the description.
func (v *FS) openAnew(d *fdcache.Desc, st *linux.Stat, how *vfs.HostOpen) (int, error) {
	if how.Sealed {
		return v.openSealed(d, st)
	}
	flags := unix.O_RDONLY
	switch how.Access {
	case vfs.ShareWrite:
		flags = unix.O_WRONLY
	case vfs.ShareRead | vfs.ShareWrite:
		flags = unix.O_RDWR
	}
	fd, err := linux.Reopen(d.FD, flags)
	if err != nil {
		return -1, linux.Fail("open", err)
	}
	return fd, nil
}

// maxSealTries is how often a file is looked for in the double of a mount while
// it or a directory above it is being renamed. Beyond, it is ErrNotSupp.
const maxSealTries = 4

// openSealed opens the regular file d, which st describes, for reading, through the
// double of its mount.
func (v *FS) openSealed(d *fdcache.Desc, st *linux.Stat) (int, error) {
	if st.Mnt_id == v.rootMount {
		in, err := v.seal.Root(v.rootFD, v.fds.AddOpen, v.report)
		if err != nil {
			return -1, err
		}
		return v.sealedIn(in, v.rootFD, d, st)
	}
	return v.mounts.Sealed(st.Mnt_id, func(double, mount int) (int, error) {
		return v.sealedIn(double, mount, d, st)
	})
}

// sealedIn is openSealed in the double whose root is in.
// mount is the root that it is a double of.
func (v *FS) sealedIn(in, mount int, d *fdcache.Desc, st *linux.Stat) (int, error) {
	if v.mode == HandlesKernel {
		var r linux.RawHandle
		if _, err := unpackHandle(&r, d.H); err != nil {
			return -1, err
		}
		fd, err := r.Open(in, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
		if err != nil {
			return -1, linux.Fail("open_by_handle_at", err)
		}
		return mounts.Same(fd, st)
	}
	for range maxSealTries {
		fd, err := mounts.SealedByPath(in, mount, d.FD, st)
		switch {
		case err == nil, errors.Is(err, vfs.ErrBusy):
			return fd, err
		case !linux.IsGone(err):
			return -1, vfs.ErrNotSupp // too deep, or behind what this process may not search
		}
	}
	return -1, vfs.ErrNotSupp
}
