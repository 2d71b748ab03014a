package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Link implements vfs.FS.
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (a vfs.Attr, wcc vfs.WCC, err error) {
	if err := checkName(name); err != nil {
		return a, wcc, err
	}
	if err := f.begin(ctx); err != nil {
		return a, wcc, err
	}
	defer f.end()
	t, d, err := f.enter(dir)
	if err != nil {
		return a, wcc, err
	}
	defer f.leave(t)
	if t.empty {
		return a, wcc, vfs.ErrXDev
	}
	x, o, err := f.take(h)
	if err != nil {
		return a, wcc, err
	}
	defer f.leave(o.s)
	defer x.close()
	if o.st.Type == vfs.TypeDir {
		return a, wcc, vfs.ErrIsDir
	}
	if err := x.link(d, name); err != nil {
		return a, wcc, orStale(d, fail("link", err))
	}
	f.moved.note(o.st.id(), t.serial, name)
	var st stat
	if x.stat(&st) == nil {
		a = st.Attr
	}
	return a, wcc, nil
}
