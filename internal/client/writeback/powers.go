package writeback

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

var (
	_ vfs.Holder = (*FS)(nil)
	_ vfs.Syncer = (*FS)(nil)
	_ vfs.ACLer  = (*FS)(nil)
)

// Holds implements vfs.Holder. The powers whose methods are here are passed on from
// the FS below. A descriptor of this host is not: it promises that what others see of
// a file are its bytes, and some of those may be dirty.
func (f *FS) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Syncer:
		return vfs.Has[vfs.Syncer](f.inner)
	case *vfs.ACLer:
		return vfs.Has[vfs.ACLer](f.inner)
	case *vfs.Locker:
		return vfs.Has[vfs.Locker](f.inner)
	case *vfs.HostOpener, *vfs.Walker: // Walk would tell sizes without the dirty bytes
		return false
	}
	return true
}

// Sync commits what is dirty in h, and then syncs below, if that is a power of
// the FS below.
func (f *FS) Sync(ctx context.Context, h vfs.Handle) error {
	if n := f.s.node(h); n != nil {
		if err := n.commit(ctx); err != nil {
			return err
		}
		if err := n.firstError(); err != nil {
			return err
		}
	}
	if below, ok := vfs.As[vfs.Syncer](f.inner); ok {
		return below.Sync(ctx, h)
	}
	return nil
}

// ACL implements vfs.ACLer.
func (f *FS) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	below, ok := vfs.As[vfs.ACLer](f.inner)
	if !ok {
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	return below.ACL(ctx, h)
}

// SetACL implements vfs.ACLer. As [FS.SetAttr], it commits what is dirty first, so
// that no WRITE is refused for the rights that it sets.
func (f *FS) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	below, ok := vfs.As[vfs.ACLer](f.inner)
	if !ok {
		return vfs.ErrNotSupp
	}
	if n := f.s.node(h); n != nil {
		if err := n.commit(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return below.SetACL(ctx, h, acl)
}
