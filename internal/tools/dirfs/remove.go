package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Remove implements vfs.FS.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (wcc vfs.WCC, err error) {
	if err := checkName(name); err != nil {
		return wcc, err
	}
	if err := f.begin(ctx); err != nil {
		return wcc, err
	}
	defer f.end()
	s, d, err := f.enter(dir)
	if err != nil {
		return wcc, err
	}
	defer f.leave(s)
	if s.empty {
		return wcc, vfs.ErrNoEnt
	}
	var st stat
	if err := d.stat(name, &st); err != nil {
		return wcc, orStale(d, fail("stat", err))
	}
	switch {
	case isDir && st.Type != vfs.TypeDir:
		return wcc, vfs.ErrNotDir
	case !isDir && st.Type == vfs.TypeDir:
		return wcc, vfs.ErrIsDir
	}
	if err := d.unlink(name, isDir); err != nil {
		return wcc, fail("unlink", err)
	}
	f.vanished(s, &st)
	return wcc, nil
}

// vanished notes that an object has lost a name in s.
func (f *FS) vanished(s *slot, st *stat) {
	switch {
	case st.Type == vfs.TypeDir:
		f.slots.removed(st.id())
		f.gone.note(st.id())
	case st.Nlink > 1:
		f.slots.changed(s)
	default:
		f.gone.note(st.id())
	}
}
