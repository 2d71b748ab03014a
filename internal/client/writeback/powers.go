package writeback

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

var (
	_ vfs.Holder     = (*FS)(nil)
	_ vfs.Syncer     = (*FS)(nil)
	_ vfs.ManyAttrer = (*FS)(nil)
	_ vfs.ACLer      = (*FS)(nil)
)

// Holds implements vfs.Holder. The powers whose methods are here are passed on from
// the FS below. A lock, and a descriptor of this host, are not: both promise that
// what others see of a file are its bytes, and some of those may be dirty.
func (f *FS) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Syncer:
		return vfs.Has[vfs.Syncer](f.inner)
	case *vfs.ManyAttrer:
		return vfs.Has[vfs.ManyAttrer](f.inner)
	case *vfs.ACLer:
		return vfs.Has[vfs.ACLer](f.inner)
	case *vfs.Locker, *vfs.HostOpener:
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

// GetAttrs is GetAttr of many.
func (f *FS) GetAttrs(ctx context.Context, hs []vfs.Handle, want vfs.Mask, attrs []vfs.Attr, errs []error) {
	if f.s.anyOpen(hs) {
		for _, h := range hs {
			if err := f.drain(ctx, h); err != nil {
				// Whose error it is comes out one by one.
				for i, h := range hs {
					attrs[i], errs[i] = f.GetAttr(ctx, h, want)
				}
				return
			}
		}
	}
	vfs.GetAttrs(ctx, f.inner, hs, want, attrs, errs)
	if f.s.anyOpen(hs) {
		for i, h := range hs {
			f.grow(h, &attrs[i])
		}
	}
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
