package memfs

import (
	"context"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.ACLer = (*FS)(nil)

// ACL implements vfs.ACLer.
func (f *FS) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	if err := f.begin(ctx, "acl", h); err != nil {
		return vfs.ACL{}, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.get(h)
	switch {
	case err != nil:
		return vfs.ACL{}, err
	case n.typ == vfs.TypeSymlink:
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	acl := vfs.ACL{Access: slices.Clone(n.acl.Access), Default: slices.Clone(n.acl.Default)}
	if acl.Access == nil {
		acl.Access = posixacl.FromMode(n.mode)
	}
	return acl, nil
}

// SetACL implements vfs.ACLer.
func (f *FS) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	if err := f.begin(ctx, "setacl", h); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(h)
	switch {
	case err != nil:
		return err
	case n.typ == vfs.TypeSymlink:
		return vfs.ErrNotSupp
	case !f.owns(n):
		return vfs.ErrPerm
	case len(acl.Default) > 0 && n.dir == nil:
		return vfs.ErrInval
	}
	access, err := posixacl.Canonical(acl.Access)
	if err != nil {
		return err
	}
	var dflt []vfs.ACLEntry
	if len(acl.Default) > 0 {
		if dflt, err = posixacl.Canonical(acl.Default); err != nil {
			return err
		}
	}
	n.setAccess(access)
	n.acl.Default = dflt
	if !f.inGroup(n.gid) {
		n.mode &^= setGID
	}
	f.changed(n, f.now())
	return nil
}

// setAccess gives n a canonical list, and the mode that goes with it.
func (n *inode) setAccess(list []vfs.ACLEntry) {
	n.mode = n.mode&^0o777 | posixacl.Mode(list)
	n.acl.Access = list
	if posixacl.Minimal(list) {
		n.acl.Access = nil
	}
}

// inherit gives n, which has its mode, the lists that its directory d has for new objects.
func (n *inode) inherit(d *inode) {
	if d.acl.Default == nil || n.typ == vfs.TypeSymlink {
		return
	}
	n.setAccess(posixacl.Inherit(d.acl.Default, n.mode))
	if n.dir != nil {
		n.acl.Default = d.acl.Default
	}
}
