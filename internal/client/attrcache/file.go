package attrcache

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file.
type file struct {
	vfs.File // below
	s        *shared
	h        vfs.Handle
	access   vfs.Share
	born     uint64 // the ticket of its opening
}

var (
	_ vfs.Unwrapper = (*file)(nil)
	_ vfs.Holder    = (*file)(nil)
)

// Open opens a file below. By its name that is asked for anew. What was asked for before of the file is not believed
// any more, so that the next question goes to the server: close-to-open.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	s := f.s
	q := s.opening(&at, how)
	inner, opened, err := f.inner.Open(ctx, at, how)
	switch {
	case how.Create != nil && at.Name != "" && (err != nil || opened.Created):
		made := vfs.At{Dir: at.Dir, Name: at.Name, H: opened.H}
		s.created(&made, &opened.Attr, &opened.Dir, how.Trunc || resizes(how.Create), q, err)
	default:
		s.opened(&at, how, &opened, q, err)
	}
	if err != nil {
		return nil, opened, err
	}
	return &file{File: inner, s: s, h: opened.H, access: how.Access, born: q.seq}, opened, nil
}

// opening is called before an Open.
func (s *shared) opening(at *vfs.At, how *vfs.OpenHow) ask {
	switch {
	case at.Name != "" && how.Create != nil:
		return s.begin(&at.Dir)
	case at.Name == "" && how.Trunc && !at.H.IsZero():
		return s.begin(&at.H)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.ticket()
	if at.Name == "" && !at.H.IsZero() {
		s.renew(&at.H, q)
	}
	return q
}

// opened takes over what an Open has found, if it has made nothing.
func (s *shared) opened(at *vfs.At, how *vfs.OpenHow, o *vfs.Opened, q ask, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Name == "" {
		switch {
		case at.H.IsZero():
		case how.Trunc:
			s.settle(&at.H, q, &vfs.WCC{After: o.Attr}, err)
		case err == nil:
			s.enter(&at.H, &o.Attr, 0, q)
		case errors.Is(err, vfs.ErrStale):
			s.gone(&at.H)
		}
		return
	}
	if how.Create != nil {
		s.object(&at.Dir).changing-- // nothing was created
	}
	before, known := s.known(&at.Dir, at.Name, q.at)
	if known && (err != nil || before != o.H) {
		s.unname(&at.Dir, at.Name)
	}
	switch {
	case err != nil:
		if errors.Is(err, vfs.ErrStale) {
			s.forget(s.object(&at.Dir))
		}
		if how.Trunc && !errors.Is(err, vfs.ErrNoEnt) {
			s.resized(&before, known)
		}
	case how.Trunc || how.Create != nil && resizes(how.Create):
		s.made(&o.H, &o.Attr, q)
	default:
		s.renew(&o.H, q)
		s.enter(&o.H, &o.Attr, 0, q)
	}
}

// Unwrap returns the file below.
func (f *file) Unwrap() any { return f.File }

// Holds implements vfs.Holder. It ends powers by which the file is changed past this.
func (f *file) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Appender:
		return false
	case *vfs.HostFiler:
		return f.access&vfs.ShareWrite == 0
	}
	return true
}

// ReadAt reads below.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	n, eof, err := f.File.ReadAt(ctx, p, off, post)
	if err != nil {
		f.s.failed(f.h, err)
	}
	return n, eof, err
}

// WriteAt writes below.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	q := f.s.begin(&f.h)
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	f.settle(q, &w.WCC, err)
	return n, err
}

// Commit commits below. It changes no attribute; but some servers write times and sizes only then.
func (f *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	q := f.s.begin(&f.h)
	err := f.File.Commit(ctx, off, n, w)
	f.settle(q, &w.WCC, err)
	return err
}

// Truncate sets the size below.
func (f *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	q := f.s.begin(&f.h)
	w, err := f.File.Truncate(ctx, size)
	f.settle(q, &w, err)
	return w, err
}

func (f *file) settle(q ask, w *vfs.WCC, err error) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.settle(&f.h, q, w, err)
}

// Close closes the file below, by which a hidden name of it may go.
func (f *file) Close(ctx context.Context) error {
	err := f.File.Close(ctx)
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects.get(&f.h); o != nil && o.hid != nil {
		s.forget(o)
		d := s.object(o.hid)
		s.seq++
		d.changed, d.until, d.broken = s.seq, 0, true
	}
	if f.born < s.floors.hidden {
		s.blind(true, true) // it may have been this one
	}
	return err
}
