package attrcache

import (
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// begin is called before a call that changes objects: until settle nothing is believed of them.
func (s *shared) begin(objects ...*vfs.Handle) ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.ticket()
	for _, h := range objects {
		s.object(h).changing++
	}
	return q
}

// settle is called when such a call has returned. It returns the object if no other change met this one.
func (s *shared) settle(h *vfs.Handle, q ask, w *vfs.WCC, err error) *object {
	o := s.object(h)
	o.changing--
	switch {
	case err == nil:
		if !s.orderly(o, w.After.Type, q) {
			s.adopt(o, q, &vfs.WCC{})
			return nil
		}
		s.adopt(o, q, w)
		return o
	case errors.Is(err, vfs.ErrStale):
		s.gone(h)
	default:
		s.forget(o)
	}
	return nil
}

// adopt has o changed by a call that began at q. Its attributes are those of w, if they came.
func (s *shared) adopt(o *object, q ask, w *vfs.WCC) {
	s.seq++
	o.changed = s.seq
	if !w.After.Has(needed) {
		o.until, o.broken = 0, true
		return
	}
	proven := o.asked.seq != 0 && precedes(&o.attr, w)
	if was, is := &o.attr, &w.After; was.Mode != is.Mode || was.UID != is.UID || was.GID != is.GID {
		o.rights = nil
	}
	o.attr, o.asked, o.wanted, o.stale = w.After, ask{s.seq, q.at}, 0, false
	o.life, o.grown = s.least(o.attr.Type), q.at
	o.until = q.at + o.life
	switch {
	case q.at >= o.namesUntil:
		s.newEpoch(o) // nothing of the old one is believed
	case !proven:
		o.broken = true
	case !o.broken:
		o.namesUntil = max(o.namesUntil, o.until)
	}
}

// made takes over the object that a call has made, or changed by its name.
func (s *shared) made(h *vfs.Handle, a *vfs.Attr, q ask) {
	if h.IsZero() {
		return
	}
	o := s.object(h)
	w := vfs.WCC{After: *a}
	if !s.orderly(o, a.Type, q) {
		w.After.Valid = 0
	}
	s.adopt(o, q, &w)
}

// lost is called when a name in dir was taken from h. If that is an open file, it may have got a hidden name there
// instead, and when it is closed the directory changes once more.
func (s *shared) lost(dir, h *vfs.Handle) {
	o := s.object(h)
	s.forget(o)
	if o.attr.Type != vfs.TypeDir {
		d := *dir
		o.hid = &d
	}
}

// blind is called when an object that is not known has changed: of which types it may be.
func (s *shared) blind(files, dirs bool) {
	s.seq++
	if files {
		s.floors.files = s.seq
	}
	if dirs {
		s.floors.dirs = s.seq
	}
}

// SetAttr changes attributes below, and keeps those that come back.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	q := f.s.begin(&h)
	w, err := f.inner.SetAttr(ctx, h, set, guard)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.settle(&h, q, &w, err)
	if set.Valid&(vfs.MaskMode|vfs.MaskUID|vfs.MaskGID) != 0 {
		f.s.object(&h).rights = nil
	}
	return w, err
}

// Create makes an object below, and keeps what comes back.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, called string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	q := f.s.begin(&dir)
	h, a, w, err := f.inner.Create(ctx, dir, called, how)
	f.s.created(&vfs.At{Dir: dir, Name: called, H: h}, &a, &w, resizes(how), q, err)
	return h, a, w, err
}

// resizes reports whether creating a file may set the size of one that is there.
func resizes(how *vfs.CreateHow) bool {
	return how.Mode == vfs.CreateUnchecked && how.Set.Valid&vfs.MaskSize != 0
}

// created takes over what has become of a name that was to be made. resizes says that a file that was there may have been
// cut.
func (s *shared) created(at *vfs.At, a *vfs.Attr, w *vfs.WCC, resizes bool, q ask, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, called, h := &at.Dir, at.Name, &at.H
	before, known := s.peek(dir, called)
	if untouched(err) {
		s.object(dir).changing--
		s.unname(dir, called)
		return
	}
	d := s.settle(dir, q, w, err)
	if err != nil {
		s.unname(dir, called)
		if resizes {
			s.resized(&before, known)
		}
		return
	}
	s.made(h, a, q)
	if d == nil {
		s.unname(dir, called)
		return
	}
	s.name(d, dir, called, h, q)
}

// resized is called when a call that failed may have cut the file that a name led to.
func (s *shared) resized(h *vfs.Handle, known bool) {
	switch {
	case !known:
		s.blind(true, false)
	case !h.IsZero():
		s.forget(s.object(h))
	}
}

// peek is what a name led to before a call that is not settled yet. Other calls may be changing the directory, too: one
// that has changed this very name has made it unknown.
func (s *shared) peek(dir *vfs.Handle, called string) (h vfs.Handle, known bool) {
	d := s.object(dir)
	changing := d.changing
	d.changing = 0
	h, known = s.known(dir, called, s.now())
	d.changing = changing
	return h, known
}

// Link gives an object a further name below.
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, called string) (vfs.Attr, vfs.WCC, error) {
	q := f.s.begin(&h, &dir)
	a, w, err := f.inner.Link(ctx, h, dir, called)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.settle(&h, q, &vfs.WCC{After: a}, err)
	if d := f.s.settle(&dir, q, &w, err); d != nil {
		f.s.name(d, &dir, called, &h, q)
	} else {
		f.s.unname(&dir, called)
	}
	return a, w, err
}

// Remove removes a name below.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, called string, isDir bool) (vfs.WCC, error) {
	q := f.s.begin(&dir)
	w, err := f.inner.Remove(ctx, dir, called, isDir)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	h, known := f.s.peek(&dir, called)
	f.s.unname(&dir, called)
	if untouched(err) {
		f.s.object(&dir).changing--
		return w, err
	}
	f.s.settle(&dir, q, &w, err)
	if known && !h.IsZero() {
		f.s.lost(&dir, &h)
		return w, err
	}
	f.s.blind(!isDir, isDir)
	if !isDir {
		f.s.floors.hidden = f.s.seq
	}
	return w, err
}

// untouched reports whether the error of a Create or Remove says that nothing has changed. Those of other calls, and
// other errors of these, may be of a second step.
func untouched(err error) bool {
	none := errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrExist) || errors.Is(err, vfs.ErrNotEmpty)
	return none && !errors.Is(err, vfs.ErrUnknownOutcome)
}

// Rename moves a name below.
func (f *FS) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	dirs := []*vfs.Handle{&fromDir, &toDir}
	if fromDir == toDir {
		dirs = dirs[:1]
	}
	q := f.s.begin(dirs...)
	from, to, err = f.inner.Rename(ctx, fromDir, fromName, toDir, toName)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	source, sourceKnown := f.s.peek(&fromDir, fromName)
	target, targetKnown := f.s.peek(&toDir, toName)
	sourceKnown = sourceKnown && !source.IsZero()
	d := f.s.settle(&fromDir, q, &from, err)
	if fromDir != toDir {
		d = f.s.settle(&toDir, q, &to, err)
	}
	f.s.unname(&fromDir, fromName)
	f.s.unname(&toDir, toName)
	f.s.renamed(&source, sourceKnown, &toDir, &target, targetKnown)
	if d != nil && sourceKnown && source != target { // two names of one object are left as they are
		f.s.name(d, &toDir, toName, &source, q)
	}
	return from, to, err
}

// renamed has the object that was renamed, and the one that it replaced, changed.
func (s *shared) renamed(source *vfs.Handle, sourceKnown bool, toDir, target *vfs.Handle, targetKnown bool) {
	files, dirs := !sourceKnown, !sourceKnown
	if sourceKnown {
		o := s.object(source)
		if !targetKnown { // a file replaces none but files, a directory none but directories
			sure := o.asked.seq != 0
			files = !sure || o.attr.Type != vfs.TypeDir
			dirs = !sure || o.attr.Type == vfs.TypeDir
		}
		s.forget(o)
	}
	if targetKnown && !target.IsZero() {
		s.lost(toDir, target)
	}
	if files || dirs {
		s.blind(files, dirs)
	}
	if !targetKnown && files {
		s.floors.hidden = s.seq
	}
}
