package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Lookup implements vfs.FS. It does not return the directory's attributes.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	if name != ".." {
		if err := checkName(name); err != nil {
			return h, a, dirAttr, err
		}
	}
	if err := f.begin(ctx); err != nil {
		return h, a, dirAttr, err
	}
	defer f.end()
	s, d, err := f.enter(dir)
	if err != nil {
		return h, a, dirAttr, err
	}
	defer f.leave(s)
	if name == ".." {
		h, a, err = f.parent(s)
		return h, a, dirAttr, err
	}
	if s.empty {
		return h, a, dirAttr, vfs.ErrNoEnt
	}
	var st stat
	if err := d.stat(name, &st); err != nil {
		return h, a, dirAttr, orStale(d, fail("stat", err))
	}
	return f.handleOf(s, name, &st), st.Attr, dirAttr, nil
}

// parent returns the directory that s is in; for the root, the root.
func (f *FS) parent(s *slot) (h vfs.Handle, a vfs.Attr, err error) {
	t := &f.slots
	t.mu.Lock()
	up := s.parent
	if up == nil {
		up = s
	}
	r := ref{kind: vfs.TypeDir, id: up.id}
	if up.parent != nil {
		r.slot, r.name = up.parent.serial, up.name
	}
	t.holdLocked(up)
	t.mu.Unlock()
	d, err := f.pin(up)
	if err != nil {
		t.drop(up)
		return h, a, err
	}
	defer f.leave(up)
	var st stat
	if err := d.self(&st); err != nil {
		return h, a, fail("stat", err)
	}
	if len(r.name) > inlineName {
		f.long.keep(r.name)
	}
	return r.handle(), st.Attr, nil
}

// orStale makes ErrStale of err if d itself is gone, and not only a name in it.
func orStale(d *hostDir, err error) error {
	if err != vfs.ErrNoEnt { //nolint:errorlint // fail returns it as it is
		return err
	}
	var st stat
	if d.self(&st) == nil && st.Nlink == 0 {
		return vfs.ErrStale
	}
	return err
}
