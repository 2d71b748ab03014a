package outage

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// ACL passes through.
func (f *FS) ACL(ctx context.Context, h vfs.Handle) (acl vfs.ACL, err error) {
	below, ok := vfs.As[vfs.ACLer](f.below)
	if !ok {
		return acl, vfs.ErrNotSupp
	}
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		acl, err = below.ACL(ctx, h)
		return err
	})
	return acl, err
}

// SetACL passes through.
func (f *FS) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	below, ok := vfs.As[vfs.ACLer](f.below)
	if !ok {
		return vfs.ErrNotSupp
	}
	err := f.s.ask(ctx, func(ctx context.Context) error { return below.SetACL(ctx, h, acl) })
	f.s.noteChange(h, &vfs.WCC{}, err)
	return err
}

// Lock takes a lock, or is a BusyError. What the call has done is then settled below.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	below := vfs.LockerOf(f.below)
	return f.s.ask(ctx, func(ctx context.Context) error { return below.Lock(ctx, h, l) })
}

// Unlock passes on, also to a silent server: what holds the locks goes on to try.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	bounded, cancel := context.WithTimeout(ctx, f.s.o.Answer)
	defer cancel()
	began := f.s.now()
	return f.s.judge(ctx, began, vfs.LockerOf(f.below).Unlock(bounded, h, l))
}

// TestLock passes through.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (holder vfs.Lock, free bool, err error) {
	below := vfs.LockerOf(f.below)
	err = f.s.ask(ctx, func(ctx context.Context) (err error) {
		holder, free, err = below.TestLock(ctx, h, l)
		return err
	})
	return holder, free, err
}

// ReleaseLocks passes on, as Unlock does.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	bounded, cancel := context.WithTimeout(ctx, f.s.o.Answer)
	defer cancel()
	began := f.s.now()
	return f.s.judge(ctx, began, vfs.LockerOf(f.below).ReleaseLocks(bounded, whom))
}
