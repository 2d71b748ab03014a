package memfs

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Xattrer = (*FS)(nil)

// maxXattrs bounds the values of one object's extended attributes, in bytes. At the bound it is
// ErrNoSpace, and so it is at vfs.MaxXattrNames.
const maxXattrs = 2 * vfs.MaxXattr

// Xattrs implements vfs.Xattrer.
func (f *FS) Xattrs(ctx context.Context, h vfs.Handle) ([]string, error) {
	if err := f.begin(ctx, "xattrs", h); err != nil {
		return nil, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.attributed(h)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.xattrs)), nil
}

// Xattr implements vfs.Xattrer.
func (f *FS) Xattr(ctx context.Context, h vfs.Handle, name string) ([]byte, error) {
	if err := f.begin(ctx, "xattr", h); err != nil {
		return nil, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.attributed(h)
	if err == nil {
		err = vfs.CheckXattr(name)
	}
	if err == nil {
		err = f.may(n, mayRead)
	}
	if err != nil {
		return nil, err
	}
	value, ok := n.xattrs[name]
	if !ok {
		return nil, vfs.ErrNoXattr
	}
	return bytes.Clone(value), nil
}

// SetXattr implements vfs.Xattrer.
func (f *FS) SetXattr(ctx context.Context, h vfs.Handle, name string, value []byte, how vfs.XattrHow) error {
	if err := f.begin(ctx, "setxattr", h); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.mayMark(h, name)
	if err != nil {
		return err
	}
	_, there := n.xattrs[name]
	switch {
	case how > vfs.XattrReplace:
		return vfs.ErrInval
	case len(value) > vfs.MaxXattr:
		return vfs.ErrXattr2Big
	case there && how == vfs.XattrCreate:
		return vfs.ErrExist
	case !there && how == vfs.XattrReplace:
		return vfs.ErrNoXattr
	case !n.hasRoom(name, value):
		return vfs.ErrNoSpace
	}
	if n.xattrs == nil {
		n.xattrs = make(map[string][]byte)
	}
	n.xattrs[name] = append([]byte{}, value...)
	f.changed(n, f.now())
	return nil
}

// RemoveXattr implements vfs.Xattrer.
func (f *FS) RemoveXattr(ctx context.Context, h vfs.Handle, name string) error {
	if err := f.begin(ctx, "removexattr", h); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.mayMark(h, name)
	if err != nil {
		return err
	}
	if _, ok := n.xattrs[name]; !ok {
		return vfs.ErrNoXattr
	}
	delete(n.xattrs, name)
	f.changed(n, f.now())
	return nil
}

// attributed returns the inode of h if it may have extended attributes. The caller holds mu.
func (f *FS) attributed(h vfs.Handle) (*inode, error) {
	n, err := f.get(h)
	if err == nil && n.typ != vfs.TypeReg && n.typ != vfs.TypeDir {
		err = vfs.ErrNotSupp
	}
	return n, err
}

// mayMark returns the inode of h if the caller may change its attribute name.
func (f *FS) mayMark(h vfs.Handle, name string) (*inode, error) {
	n, err := f.attributed(h)
	if err == nil {
		err = vfs.CheckXattr(name)
	}
	if err == nil && n.dir != nil && n.mode&sticky != 0 && !f.owns(n) {
		err = vfs.ErrPerm
	}
	if err == nil {
		err = f.may(n, mayWrite)
	}
	return n, err
}

// hasRoom reports whether the object's attributes stay within their bounds if it gets this one.
func (n *inode) hasRoom(name string, value []byte) bool {
	names, values := len(name)+1, len(value)
	for other, v := range n.xattrs {
		if other != name {
			names, values = names+len(other)+1, values+len(v)
		}
	}
	return names <= vfs.MaxXattrNames && values <= maxXattrs
}
