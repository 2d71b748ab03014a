package readahead

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Locker = (*FS)(nil)

// Lock implements vfs.Locker. With a lock its holder reads what others wrote before: what was read
// ahead of the file, or is being read, is dropped.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	err := vfs.LockerOf(f.FS).Lock(ctx, h, l)
	if err == nil {
		f.s.resized(h)
	}
	return err
}

// Unlock passes through.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	return vfs.LockerOf(f.FS).Unlock(ctx, h, l)
}

// TestLock passes through.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	return vfs.LockerOf(f.FS).TestLock(ctx, h, l)
}

// ReleaseLocks passes through.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	return vfs.LockerOf(f.FS).ReleaseLocks(ctx, whom)
}
