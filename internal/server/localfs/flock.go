//go:build linux

package localfs

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Locker = (*FS)(nil)

// Lock implements vfs.Locker. As for READ and WRITE, a shared lock takes the right to
// read, an exclusive one the right to write, and the owner of the file has both. A range
// that reaches beyond 2^63-1 is ErrFBig; at a bound of package ofd, or of the kernel, a
// lock is ErrBusy.
func (v *FS) Lock(ctx context.Context, x vfs.Handle, l *vfs.Lock) error {
	s, ok := byterange.Of(l.Off, l.Len, l.Exclusive)
	if !ok {
		return vfs.ErrFBig
	}
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	o, err := v.regular(x)
	if err != nil {
		return err
	}
	defer v.fds.Unpin(o)
	if err := v.mayLock(o, l.Exclusive); err != nil {
		return err
	}
	return v.flocks.Lock(x, l.Owner, s, func() (int, error) {
		return v.openForLocks(o, l.Exclusive || v.mayLock(o, true) == nil)
	})
}

// Unlock implements vfs.Locker. It needs no right, and the file no name.
func (v *FS) Unlock(ctx context.Context, x vfs.Handle, l *vfs.Lock) error {
	s, ok := byterange.Of(l.Off, l.Len, l.Exclusive)
	if !ok {
		return vfs.ErrFBig
	}
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	known, err := v.flocks.Unlock(x, l.Owner, s)
	if known {
		return err
	}
	o, err := v.regular(x)
	if err == nil {
		v.fds.Unpin(o)
	}
	return err
}

// TestLock implements vfs.Locker.
func (v *FS) TestLock(ctx context.Context, x vfs.Handle, l *vfs.Lock) (holder vfs.Lock, free bool, err error) {
	s, ok := byterange.Of(l.Off, l.Len, l.Exclusive)
	if !ok {
		return holder, false, vfs.ErrFBig
	}
	if err := v.begin(ctx, classMeta); err != nil {
		return holder, false, err
	}
	defer v.end(classMeta)
	o, err := v.regular(x)
	if err != nil {
		return holder, false, err
	}
	defer v.fds.Unpin(o)
	if err := v.mayLock(o, false); err != nil && v.mayLock(o, true) != nil {
		return holder, false, err
	}
	return v.flocks.Test(x, l.Owner, s, func() (int, func(), error) {
		d, err := v.data(x, fdcache.Read)
		if errors.Is(err, vfs.ErrAccess) {
			d, err = v.data(x, fdcache.Write)
		}
		if err != nil {
			return -1, nil, err
		}
		return d.FD, func() { v.fds.Unpin(d) }, nil
	})
}

// ReleaseLocks implements vfs.Locker. whom must not call back.
func (v *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	v.flocks.Release(whom)
	return nil
}

func (v *FS) mayLock(o *fdcache.Desc, exclusive bool) error {
	var st linux.Stat
	if err := v.stat(o, &st); err != nil {
		return err
	}
	if !exclusive {
		return v.mayReadData(o, &st)
	}
	if v.o.ReadOnly {
		return vfs.ErrROFS
	}
	return v.mayWriteData(o, &st)
}

// openForLocks opens a description for an owner's locks, with the rights of the server.
// It is good for both kinds if the caller may write to the file. If not, or if the server
// may not, an exclusive lock is ErrAccess until the owner has none left. A program that is
// open to be written cannot be executed (ETXTBSY), and a caller that may only read it must
// not bring that about.
func (v *FS) openForLocks(o *fdcache.Desc, write bool) (int, error) {
	if err := v.fds.Room(); err != nil {
		return -1, err
	}
	fd, err := -1, error(unix.EROFS)
	if write && !v.o.ReadOnly {
		fd, err = linux.Reopen(o.FD, unix.O_RDWR)
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.ETXTBSY) || errors.Is(err, unix.EPERM) {
		fd, err = linux.Reopen(o.FD, unix.O_RDONLY)
	}
	if err != nil {
		v.fds.AddOpen(-1)
		return -1, linux.Fail("open", err)
	}
	return fd, nil
}
