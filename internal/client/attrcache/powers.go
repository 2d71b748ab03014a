package attrcache

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

var (
	_ vfs.Holder  = (*FS)(nil)
	_ vfs.Locker  = (*FS)(nil)
	_ vfs.ACLer   = (*FS)(nil)
	_ vfs.Xattrer = (*FS)(nil)
	_ vfs.Putter  = (*FS)(nil)
)

// Holds implements vfs.Holder. The powers whose methods are here are passed on from the FS below. Others end: to look
// names up past what is kept, to have handles forgotten that are kept here, and to open files that are then changed past this.
func (f *FS) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Locker:
		return vfs.Has[vfs.Locker](f.inner)
	case *vfs.ACLer:
		return vfs.Has[vfs.ACLer](f.inner)
	case *vfs.Xattrer:
		return vfs.Has[vfs.Xattrer](f.inner)
	case *vfs.Putter:
		return vfs.Has[vfs.Putter](f.inner)
	case *vfs.Walker, *vfs.Forgetter, *vfs.HostOpener:
		return false
	}
	return true
}

// Lock takes the lock below. Nothing is believed of the file that was asked for before: the holder of a lock wants to see
// what others wrote.
func (f *FS) Lock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	err := vfs.LockerOf(f.inner).Lock(ctx, h, l)
	if err == nil {
		f.s.mu.Lock()
		defer f.s.mu.Unlock()
		f.s.renew(&h, f.s.ticket())
	}
	return err
}

// Unlock passes through.
func (f *FS) Unlock(ctx context.Context, h vfs.Handle, l *vfs.Lock) error {
	return vfs.LockerOf(f.inner).Unlock(ctx, h, l)
}

// TestLock passes through.
func (f *FS) TestLock(ctx context.Context, h vfs.Handle, l *vfs.Lock) (vfs.Lock, bool, error) {
	return vfs.LockerOf(f.inner).TestLock(ctx, h, l)
}

// ReleaseLocks passes through.
func (f *FS) ReleaseLocks(ctx context.Context, whom func(*vfs.Owner) bool) error {
	return vfs.LockerOf(f.inner).ReleaseLocks(ctx, whom)
}

// ACL passes through.
func (f *FS) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	below, ok := vfs.As[vfs.ACLer](f.inner)
	if !ok {
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	return below.ACL(ctx, h)
}

// SetACL sets lists below, and with them mode and rights.
func (f *FS) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	below, ok := vfs.As[vfs.ACLer](f.inner)
	if !ok {
		return vfs.ErrNotSupp
	}
	return f.changes(h, func() error { return below.SetACL(ctx, h, acl) })
}

// changes runs a call that changes an object, and does not say to what.
func (f *FS) changes(h vfs.Handle, call func() error) error {
	q := f.s.begin(&h)
	err := call()
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.settle(&h, q, &vfs.WCC{}, err)
	f.s.object(&h).rights = nil
	return err
}

// Xattrs passes through.
func (f *FS) Xattrs(ctx context.Context, h vfs.Handle) ([]string, error) {
	below, ok := vfs.As[vfs.Xattrer](f.inner)
	if !ok {
		return nil, vfs.ErrNotSupp
	}
	return below.Xattrs(ctx, h)
}

// Xattr passes through.
func (f *FS) Xattr(ctx context.Context, h vfs.Handle, called string) ([]byte, error) {
	below, ok := vfs.As[vfs.Xattrer](f.inner)
	if !ok {
		return nil, vfs.ErrNotSupp
	}
	return below.Xattr(ctx, h, called)
}

// SetXattr sets one below.
func (f *FS) SetXattr(ctx context.Context, h vfs.Handle, called string, value []byte, how vfs.XattrHow) error {
	below, ok := vfs.As[vfs.Xattrer](f.inner)
	if !ok {
		return vfs.ErrNotSupp
	}
	return f.changes(h, func() error { return below.SetXattr(ctx, h, called, value, how) })
}

// RemoveXattr removes one below.
func (f *FS) RemoveXattr(ctx context.Context, h vfs.Handle, called string) error {
	below, ok := vfs.As[vfs.Xattrer](f.inner)
	if !ok {
		return vfs.ErrNotSupp
	}
	return f.changes(h, func() error { return below.RemoveXattr(ctx, h, called) })
}

// Put makes a file below, with its bytes.
func (f *FS) Put(ctx context.Context, dir vfs.Handle, called string, mode uint32, data []byte) (vfs.Handle, vfs.Attr, error) {
	below, ok := vfs.As[vfs.Putter](f.inner)
	if !ok {
		return vfs.Handle{}, vfs.Attr{}, vfs.ErrNotSupp
	}
	q := f.s.begin(&dir)
	h, a, err := below.Put(ctx, dir, called, mode, data)
	f.s.created(&vfs.At{Dir: dir, Name: called, H: h}, &a, &vfs.WCC{}, false, q, err)
	return h, a, err
}
