//go:build linux

package localfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Locks on ranges of bytes are the kernel's, of the kind that belongs to an open
// file description (F_OFD_SETLK of fcntl(2)): every owner has one description
// of each file that it has locked, and so the kernel holds the owners apart, and
// apart from the programs of this host. The classic kind would belong to this
// process as a whole, and fall with the first descriptor that it closes. No call
// waits for a lock (F_OFD_SETLKW keeps a thread for as long as it waits).

var _ vfs.Locker = (*FS)(nil)

// Lock implements vfs.Locker. As for READ and WRITE, a lock to be shared takes the
// right to read, one to be alone the right to write, and the owner of the file
// has both. A range that reaches beyond 2^63-1 is ErrFBig; at one of this
// package's bounds, or the kernel's, a lock is ErrBusy.
func (v *FS) Lock(ctx context.Context, x vfs.Handle, l *vfs.Lock) error {
	s, ok := byterange.Of(l.Off, l.Len, l.Exclusive)
	if !ok {
		return vfs.ErrFBig
	}
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	o, err := v.lockable(x)
	if err != nil {
		return err
	}
	defer v.fds.Unpin(o)
	if err := v.mayLock(o, l.Exclusive); err != nil {
		return err
	}
	f := v.flocks.pin(x)
	defer v.flocks.unpin(x, f)
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.owners[l.Owner]
	if w == nil {
		if w, err = v.newLockOwner(o, l.Owner.Share, l.Exclusive || v.mayLock(o, true) == nil); err != nil {
			return err
		}
		f.owners[l.Owner] = w
	}
	err = w.lock(s)
	v.drop(f, l.Owner, w)
	return err
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
	f := v.flocks.find(x)
	if f == nil {
		o, err := v.lockable(x)
		if err == nil {
			v.fds.Unpin(o)
		}
		return err
	}
	defer v.flocks.unpin(x, f)
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.owners[l.Owner]
	if w == nil {
		return nil
	}
	err := w.unlock(s)
	v.drop(f, l.Owner, w)
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
	o, err := v.lockable(x)
	if err != nil {
		return holder, false, err
	}
	defer v.fds.Unpin(o)
	if err := v.mayLock(o, false); err != nil && v.mayLock(o, true) != nil {
		return holder, false, err
	}
	f := v.flocks.pin(x)
	defer v.flocks.unpin(x, f)
	f.mu.Lock()
	defer f.mu.Unlock()
	// Ours first: of those the owner is known, which the kernel does not tell.
	for owner, w := range f.owners {
		if held, found := w.set.Conflict(s); found && owner != l.Owner {
			return lockOf(owner, held), false, nil
		}
	}
	held, free, err := v.askLock(x, f.owners[l.Owner], s)
	return lockOf(vfs.Owner{}, held), free, err
}

func lockOf(owner vfs.Owner, s byterange.Span) vfs.Lock {
	return vfs.Lock{Owner: owner, Exclusive: s.Exclusive, Off: s.First, Len: s.Len()}
}

// ReleaseLocks implements vfs.Locker. whom must not call back.
func (v *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	if err := v.begin(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	v.releaseLocks(whom)
	return nil
}

// releaseLocks is ReleaseLocks for a call that has passed the door.
func (h *host) releaseLocks(whom func(*vfs.Owner) bool) {
	for x, f := range h.flocks.pinAll() {
		f.mu.Lock()
		for owner, w := range f.owners {
			if !whom(&owner) {
				continue
			}
			// Should it fail, the locks go with the description. Not by that
			// alone: a process that is being started has a copy of it for a moment.
			_ = w.unlock(byterange.Span{Last: byterange.Max})
			w.set = nil
			h.drop(f, owner, w)
		}
		f.mu.Unlock()
		h.flocks.unpin(x, f)
	}
}

// lockable returns the pinned O_PATH descriptor of the regular file x.
func (v *FS) lockable(x vfs.Handle) (*fdcache.Desc, error) {
	o, err := v.object(x)
	if err != nil {
		return nil, err
	}
	switch o.Kind {
	case unix.S_IFREG:
		return o, nil
	case unix.S_IFDIR:
		err = vfs.ErrIsDir
	default:
		err = vfs.ErrInval
	}
	v.fds.Unpin(o)
	return nil, err
}

// mayLock checks the caller's rights.
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

// newLockOwner opens a description for an owner's locks, with the rights of the
// server. It is good for both kinds if the caller may write to the file. If not,
// or if the server may not, an exclusive lock is ErrAccess until the owner has none
// left: a program that is open to be written cannot be executed (ETXTBSY), and a caller
// that may only read it must not bring that about.
func (v *FS) newLockOwner(o *fdcache.Desc, share string, write bool) (*lockOwner, error) {
	if !v.flocks.room(v.fds.Max/lockShare, share) {
		return nil, fmt.Errorf("localfs: locks may hold %d files open, and the client has its share of them: %w", v.fds.Max/lockShare, vfs.ErrBusy)
	}
	if err := v.fds.Room(); err != nil {
		v.flocks.left(share)
		return nil, err
	}
	fd, err := -1, error(unix.EROFS)
	if write && !v.o.ReadOnly {
		fd, err = linux.Reopen(o.FD, unix.O_RDWR)
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.ETXTBSY) || errors.Is(err, unix.EPERM) {
		fd, err = linux.Reopen(o.FD, unix.O_RDONLY)
	}
	if err != nil {
		v.fds.Lend(-1)
		v.flocks.left(share)
		return nil, linux.Fail("open", err)
	}
	return &lockOwner{fd: fd}, nil
}

// drop closes w if it holds no lock. The caller holds f.mu.
func (h *host) drop(f *lockedFile, owner vfs.Owner, w *lockOwner) {
	if len(w.set) > 0 {
		return
	}
	delete(f.owners, owner)
	_ = unix.Close(w.fd) // nothing was written through it
	h.fds.Lend(-1)
	h.flocks.left(owner.Share)
}

// lock takes s, for the kernel to refuse.
func (w *lockOwner) lock(s byterange.Span) error {
	kind := int16(unix.F_RDLCK)
	if s.Exclusive {
		kind = unix.F_WRLCK
	}
	return w.change(kind, s, w.copy().Put(s))
}

func (w *lockOwner) unlock(s byterange.Span) error {
	return w.change(unix.F_UNLCK, s, w.copy().Take(s))
}

// copy keeps w.set as it is while the next one is made.
func (w *lockOwner) copy() byterange.Set { return append(byterange.Set(nil), w.set...) }

// change has the kernel do to s what makes w's locks those of next.
func (w *lockOwner) change(kind int16, s byterange.Span, next byterange.Set) error {
	if len(next) > maxLockRanges && len(next) > len(w.set) {
		return fmt.Errorf("localfs: one owner holds %d ranges of one file apart: %w", len(w.set), vfs.ErrBusy)
	}
	k := flockArg(kind, s)
	err := linux.Again(func() error { return unix.FcntlFlock(uintptr(w.fd), unix.F_OFD_SETLK, &k) })
	switch {
	case err == nil:
		w.set = next
		return nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return vfs.ErrLocked
	case errors.Is(err, unix.EBADF):
		return vfs.ErrAccess // open for reading only
	case errors.Is(err, unix.ENOLCK):
		return fmt.Errorf("localfs: the kernel's table of locks is full: %w", vfs.ErrBusy)
	}
	return linux.Fail("fcntl", err)
}

// askLock asks the kernel for a lock in the way of s. mine are the locks of the
// one who asks, which are in no one's way; nil if there are none.
func (v *FS) askLock(x vfs.Handle, mine *lockOwner, s byterange.Span) (held byterange.Span, free bool, err error) {
	fd := -1
	if mine != nil {
		fd = mine.fd
	} else {
		d, err := v.data(x, fdcache.Read)
		if errors.Is(err, vfs.ErrAccess) {
			d, err = v.data(x, fdcache.Write)
		}
		if err != nil {
			return held, false, err
		}
		defer v.fds.Unpin(d)
		fd = d.FD
	}
	kind := int16(unix.F_RDLCK)
	if s.Exclusive {
		kind = unix.F_WRLCK
	}
	k := flockArg(kind, s)
	err = linux.Again(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &k) })
	if err != nil {
		return held, false, linux.Fail("fcntl", err)
	}
	if k.Type == unix.F_UNLCK {
		return held, true, nil
	}
	held, ok := byterange.Of(uint64(k.Start), uint64(k.Len), k.Type == unix.F_WRLCK)
	if !ok {
		return held, false, fmt.Errorf("localfs: the kernel tells of a lock of %d bytes at %d: %w", k.Len, k.Start, vfs.ErrIO)
	}
	return held, false, nil
}

// flockArg is struct flock.
func flockArg(kind int16, s byterange.Span) unix.Flock_t {
	return unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: int64(s.First), Len: int64(min(s.Len(), math.MaxInt64))}
}
