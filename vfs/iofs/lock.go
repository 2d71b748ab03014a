package iofs

import (
	"context"
	"io/fs"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// unlockTime bounds how long a lock is freed when the context of the FS has ended. At the bound it
// may stay until the file system is closed.
const unlockTime = 30 * time.Second

// Range is a range of a file's bytes, for locks. The zero Range is the whole file, however far it
// grows, and alone.
type Range struct {
	Off, Len int64 // Len 0: to the end
	Shared   bool  // others may have shared locks there, too
}

// Lock locks the whole file, as flock(2) does, and waits as long as another has a lock in it. Each
// open File is an owner of its own: two of one program exclude each other, whichever their FS. Locks are advisory:
// reads and writes do not look at them. What others wrote before is read after Lock, and what was written
// before Unlock is read by the next owner.
//
// A file system without locks is errors.ErrUnsupported; over NFS a server without a lock manager, or
// without room for a lock, Is syscall.ENOLCK. If the server has restarted and a lock could not be had
// back, the next call of Lock or Unlock is vfs.ErrIO, once, and so are all reads and writes of this File.
func (o *File) Lock() error { return o.LockRange(Range{}) }

// TryLock is Lock, but does not wait: it is vfs.ErrLocked if another has a lock in the file.
func (o *File) TryLock() error { return o.TryLockRange(Range{}) }

// Unlock does what Sync does, and frees all locks of this File, also when the context of its FS has
// ended. It frees them, too, when Sync fails. Close does the same.
func (o *File) Unlock() error { return o.UnlockRange(Range{}) }

// LockRange is Lock of a range. A range that this File has locked already takes the new kind.
func (o *File) LockRange(r Range) error { return o.lockRange(r, vfs.AwaitLock) }

// TryLockRange is TryLock of a range.
func (o *File) TryLockRange(r Range) error {
	return o.lockRange(r, func(ctx context.Context, k vfs.Locker, h vfs.Handle, l *vfs.Lock) error { return k.Lock(ctx, h, l) })
}

// UnlockRange is Unlock of a range, and keeps what is locked beyond it.
func (o *File) UnlockRange(r Range) error {
	o.state.Lock()
	closed := o.closed
	o.state.Unlock()
	if closed {
		return o.fail("unlock", fs.ErrClosed)
	}
	err := o.commit("unlock")
	if e := o.unlock(r); err == nil {
		err = e
	}
	return err
}

func (o *File) lockRange(r Range, lock func(context.Context, vfs.Locker, vfs.Handle, *vfs.Lock) error) error {
	err := o.use(0)
	if err == nil && (r.Off < 0 || r.Len < 0) {
		err = fs.ErrInvalid
	}
	if err == nil {
		o.state.Lock()
		o.locked, o.toldAt = true, time.Time{} // what came with the open may be outdated
		o.state.Unlock()
		err = lock(o.fs.ctx, vfs.LockerOf(o.fs.fs), o.handle, o.lockOf(r))
	}
	if err != nil {
		return o.fail("lock", err)
	}
	return nil
}

func (o *File) lockOf(r Range) *vfs.Lock {
	return &vfs.Lock{Owner: o.owner, Exclusive: !r.Shared, Off: uint64(r.Off), Len: uint64(r.Len)}
}

// unlock frees a range, if anything was ever locked.
func (o *File) unlock(r Range) error {
	o.state.Lock()
	locked := o.locked
	o.state.Unlock()
	switch {
	case !locked:
		return nil
	case r.Off < 0 || r.Len < 0:
		return o.fail("unlock", fs.ErrInvalid)
	}
	ctx := o.fs.ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), unlockTime)
		defer cancel()
	}
	if err := vfs.LockerOf(o.fs.fs).Unlock(ctx, o.handle, o.lockOf(r)); err != nil {
		return o.fail("unlock", err)
	}
	return nil
}
