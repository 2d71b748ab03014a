package memfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Link gives h a further name. A directory has only one (RFC 8881, section 18.9.3: ISDIR).
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	if err := f.begin(ctx, "link", dir); err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(h)
	if err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	d, err := f.getDir(dir)
	if err != nil {
		return f.attr(n), vfs.WCC{}, err
	}
	pre := d.pre()
	if err := f.mayLink(n, d, name); err != nil {
		return f.attr(n), f.wcc(d, pre), err
	}
	now := f.now()
	d.dir.add(name, n)
	n.nlink++
	f.changed(n, now)
	f.modified(d, now)
	return f.attr(n), f.wcc(d, pre), nil
}

func (f *FS) mayLink(n, d *inode, name string) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	if err := f.may(d, mayExec); err != nil {
		return err
	}
	switch {
	case n.typ == vfs.TypeDir:
		return vfs.ErrIsDir
	case d.dir.lookup(name) != nil:
		return vfs.ErrExist
	case n.nlink == 0: // open, but removed: it gets no new name
		return vfs.ErrStale
	case n.nlink >= f.opt.MaxLinks:
		return vfs.ErrMLink
	}
	return f.may(d, mayWrite)
}
