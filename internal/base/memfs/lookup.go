package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Lookup finds name in dir. ".." is the parent; the root's is the root.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	if err = f.begin(ctx, "lookup", dir); err != nil {
		return h, attr, dirAttr, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	d, err := f.getDir(dir)
	if err != nil {
		return h, attr, dirAttr, err
	}
	n, err := f.find(d, name)
	if err != nil {
		return h, attr, f.attr(d), err
	}
	return f.handle(n), f.attr(n), f.attr(d), nil
}

// find is the lookup of one name. The caller holds mu.
func (f *FS) find(d *inode, name string) (*inode, error) {
	if name != ".." {
		if err := vfs.CheckName(name); err != nil {
			return nil, err
		}
	}
	if err := f.may(d, mayExec); err != nil {
		return nil, err
	}
	if name == ".." {
		return d.dir.parent, nil
	}
	if n := d.dir.lookup(name); n != nil {
		return n, nil
	}
	return nil, vfs.ErrNoEnt
}

// Walk implements vfs.Walker by one Lookup after the other.
func (f *FS) Walk(ctx context.Context, dir vfs.Handle, names []string) (n int, at vfs.Resolved) {
	for at.Handle = dir; n < len(names); n++ {
		if vfs.CheckName(names[n]) != nil {
			break
		}
		h, attr, _, err := f.Lookup(ctx, at.Handle, names[n])
		if err != nil || attr.Type == vfs.TypeSymlink {
			break
		}
		at = vfs.Resolved{Handle: h, Attr: attr, Dir: at.Handle, Name: names[n]}
	}
	return n, at
}
