package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Rename implements vfs.FS.
func (f *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	if err := checkName(fromName); err != nil {
		return from, to, err
	}
	if err := checkName(toName); err != nil {
		return from, to, err
	}
	if err := f.begin(ctx); err != nil {
		return from, to, err
	}
	defer f.end()
	s, d, err := f.enter(fromDir)
	if err != nil {
		return from, to, err
	}
	defer f.leave(s)
	t, e, err := f.enter(toDir)
	if err != nil {
		return from, to, err
	}
	defer f.leave(t)
	if s.empty || t.empty {
		return from, to, vfs.ErrXDev
	}
	var st stat
	if err := d.stat(fromName, &st); err != nil {
		return from, to, orStale(d, fail("stat", err))
	}
	if st.Type == vfs.TypeDir {
		// No call resolves names through the directory while it moves.
		f.slots.tree.Lock()
		defer f.slots.tree.Unlock()
		if err := d.stat(fromName, &st); err != nil { // again, under the lock
			return from, to, orStale(d, fail("stat", err))
		}
	}
	var over stat
	replaced := e.stat(toName, &over) == nil
	if replaced && over.id() == st.id() && over.Type != vfs.TypeDir {
		return from, to, nil // rename(2) does nothing for two names of one object
	}
	// Calls that have its handle must find it at any time.
	f.slots.changed(s)
	f.slots.changed(t)
	f.moved.note(st.id(), t.serial, toName)
	if err := d.rename(fromName, e, toName); err != nil {
		f.moved.note(st.id(), s.serial, fromName)
		return from, to, orStale(e, fail("rename", err))
	}
	if replaced && over.id() != st.id() {
		f.vanished(t, &over)
	}
	if st.Type == vfs.TypeDir {
		f.slots.renamed(st.id(), t, toName)
	}
	return from, to, nil
}
