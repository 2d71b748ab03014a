package walk

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// VanishedError is an ErrVanished of a directory, with the handle and the attributes that it
// was listed with.
type VanishedError struct {
	Handle vfs.Handle
	Attr   vfs.Attr
	err    error
}

// Error implements error.
func (e *VanishedError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *VanishedError) Unwrap() error { return e.err }

// movedOn reports whether err says that a handle is stale.
func movedOn(err error) bool { return errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrStale) }

// Unlinked reports whether an object that was listed with links has none any more, although
// its name was found. While Linux removes a directory, a LOOKUP may still find it.
func Unlinked(links uint32, now *vfs.Attr) bool {
	return links > 0 && now.Has(vfs.MaskNlink) && now.Nlink == 0
}

// lookAgain handles a stale d, whose listing failed with err: it looks the name up again. If
// nothing has the name, the error is ErrVanished. If another directory has it, and Enter was
// not called for d, d becomes that directory, and the error is nil. This happens once for a
// d, so that a name which moves from directory to directory does not hold up the walk.
func (w *walker) lookAgain(d *Dir, err error) error {
	now := vfs.Entry{Name: []byte(d.Name)}
	lerr := w.complete(d.Parent, &now)
	switch {
	case errors.Is(lerr, ErrVanished), lerr == nil && Unlinked(d.Attr.Nlink, &now.Attr):
		return &VanishedError{d.Handle, d.Attr, fmt.Errorf("%w: %w", ErrVanished, err)}
	case errors.Is(lerr, vfs.ErrStale) && w.vanished(d.Parent):
		return &VanishedError{d.Handle, d.Attr, fmt.Errorf("%w, with the directory that it was in: %w", ErrVanished, err)}
	case lerr != nil:
		return fmt.Errorf("%w (and to look it up again: %w)", err, lerr)
	case now.Attr.Type != vfs.TypeDir:
		return fmt.Errorf("its name is that of a %v now: %w", now.Attr.Type, err)
	case now.Handle == d.Handle || d.replaced:
		return err
	case d.entered:
		return fmt.Errorf("another directory took its name while it was listed: %w", err)
	}
	w.mu.Lock()
	w.open.remove(d)
	d.opened = false
	d.was = d.Handle
	d.replaced, d.Handle, d.Attr = true, now.Handle, now.Attr
	w.mu.Unlock()
	d.listing = listing{}
	if err := w.admit(d); err != nil {
		return fatal{err}
	}
	return nil
}

// same returns an error if d's handle leads to another directory now, as it may after a
// restart of the server. What was listed is not that directory's.
func (w *walker) same(d *Dir) error {
	attr, err := w.fs.GetAttr(w.ctx, d.Handle, vfs.MaskV3)
	if err != nil {
		return fmt.Errorf("getattr: %w", err)
	}
	now := Dir{Attr: attr}
	if a, ok := d.id(); ok {
		if b, ok := now.id(); ok && a != b {
			return fmt.Errorf("another directory is in its place: %w", vfs.ErrStale)
		}
	}
	return nil
}

// vanished reports whether d or an ancestor is gone without a successor of its name. A stale
// handle alone does not show that: another directory may have the name.
func (w *walker) vanished(d *Dir) bool {
	for ; d.Parent != nil; d = d.Parent {
		_, _, _, err := w.fs.Lookup(w.ctx, d.Parent.Handle, d.Name)
		if !errors.Is(err, vfs.ErrStale) {
			return errors.Is(err, vfs.ErrNoEnt)
		}
	}
	return false
}
