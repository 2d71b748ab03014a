package writeback

import (
	"context"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Locker = (*FS)(nil)

// Lock implements vfs.Locker. What was written before is sent first, so that no dirty byte hides what
// others have written when the lock is had. If it could not be sent, the files tell, and not Lock.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	if n := f.s.node(h); n != nil {
		if err := n.drain(ctx, 0, math.MaxUint64); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return vfs.LockerOf(f.inner).Lock(ctx, h, l)
}

// Unlock implements vfs.Locker. What was written under the lock is made stable before it is freed, and
// so is seen by the next holder. If that fails, the files tell, and not Unlock: the lock is freed all
// the same. If ctx ends meanwhile the lock stays.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	if n := f.s.node(h); n != nil {
		if err := n.commit(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return vfs.LockerOf(f.inner).Unlock(ctx, h, l)
}

// TestLock passes through.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	return vfs.LockerOf(f.inner).TestLock(ctx, h, l)
}

// ReleaseLocks implements vfs.Locker. As [FS.Unlock] it commits first, all files.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	for _, n := range f.s.all() {
		if err := n.commit(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return vfs.LockerOf(f.inner).ReleaseLocks(ctx, whom)
}
