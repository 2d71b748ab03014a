package export

import (
	"context"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// Open implements vfs.FS. The file uses the export's file system until Close.
func (v *View) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f := &File{}
	opened, err := v.OpenIn(ctx, f, at, how)
	if err != nil {
		return nil, opened, err
	}
	return f, opened, nil
}

// OpenIn is Open into the caller's memory: an NFSv3 server opens a file for each READ
// and WRITE, and so need not allocate it. f is an open file until Close. After Close,
// or after an error, f may be used again.
func (v *View) OpenIn(ctx context.Context, f *File, at vfs.At, how *vfs.OpenHow) (vfs.Opened, error) {
	sealed := &at.H
	if at.Name != "" {
		sealed = &at.Dir
	}
	r, err := v.ref(ctx, sealed)
	if err != nil {
		return vfs.Opened{}, err
	}
	opened, err := f.open(ctx, &r, at, how)
	if err != nil {
		r.leave()
	}
	return opened, err
}

func (f *File) open(ctx context.Context, r *ref, at vfs.At, how *vfs.OpenHow) (vfs.Opened, error) {
	changes := how.Create != nil || how.Trunc
	if r.readOnly && (changes || how.Access&vfs.ShareWrite != 0) {
		return vfs.Opened{}, r.v.rofs(r.seen)
	}
	if at.Name != "" {
		at.Dir = r.h
	} else {
		at.H = r.h
	}
	below, opened, err := r.openBelow(ctx, at, how)
	if err != nil {
		return opened, err
	}
	*f = File{below: below, ref: *r, writes: how.Access&vfs.ShareWrite != 0}
	f.ref.h = opened.H
	if opened, err = r.opened(ctx, opened, changes); err != nil {
		// The error of opening says more than that of closing.
		_ = below.Close(ctx)
	}
	return opened, err
}

// openBelow opens the file in the file system below.
func (r *ref) openBelow(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if r.e.Async && !how.NoCommit {
		loose := *how
		loose.NoCommit = true
		how = &loose
	}
	if how.Create == nil {
		return r.fs.Open(ctx, at, how)
	}
	naming := r.giving(&at.Dir)
	f, opened, err := r.fs.Open(ctx, at, how)
	naming.end()
	if err == nil && !opened.Created {
		r.rejudged(&opened.H, how.Create.Set.Valid, nil)
	}
	return f, opened, err
}

// opened makes stable what the open created and seals what it found.
func (r *ref) opened(ctx context.Context, o vfs.Opened, changes bool) (vfs.Opened, error) {
	if changes {
		objects := []vfs.Handle{o.H}
		if o.Created {
			objects = append(objects, r.h)
		}
		if err := r.stable(ctx, objects...); err != nil {
			return o, err
		}
	}
	var err error
	o.H, err = r.seal(&o.H)
	return o, err
}

// File is an open file of an export: the [vfs.File] of [View.Open]. Open decides
// what may be done with it; each use decides again if the exports have been replaced
// since.
type File struct {
	below  vfs.File
	ref    ref  // of the file itself
	writes bool // it was opened to be written
	closed atomic.Bool
}

var _ vfs.File = (*File)(nil)

// may is nil if the rules now in force still let the caller use the file, and write
// it if write is true.
func (f *File) may(ctx context.Context, write bool) error {
	r := &f.ref
	st := r.v.t.state.Load()
	if st == r.st {
		return nil
	}
	e := st.byID[r.e.ID]
	if e == nil || e.users != r.e.users {
		return vfs.ErrStale
	}
	s := r.v.see(ctx, st, e)
	if s.err == nil && write && s.readOnly {
		return r.v.rofs(s)
	}
	if s.err != nil {
		r.v.refuse(s, s.why, "")
	}
	return s.err
}

// ReadAt implements vfs.File.
func (f *File) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if err := f.may(ctx, false); err != nil {
		return 0, false, err
	}
	return f.below.ReadAt(ctx, p, off, post)
}

// WriteAt implements vfs.File. On an async export the bytes are written Unstable and
// reported as FileSync.
func (f *File) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	if err := f.may(ctx, true); err != nil {
		return 0, err
	}
	if !f.ref.e.Async || how > vfs.FileSync {
		return f.below.WriteAt(ctx, p, off, how, w)
	}
	n, err = f.below.WriteAt(ctx, p, off, vfs.Unstable, w)
	w.Committed, w.Verf = vfs.FileSync, f.ref.e.verf
	return n, err
}

// Commit implements vfs.File.
func (f *File) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	if err := f.may(ctx, true); err != nil {
		return err
	}
	if !f.ref.e.Async {
		return f.below.Commit(ctx, off, n, w)
	}
	attr, err := f.ref.fs.GetAttr(ctx, f.ref.h, vfs.MaskV3)
	if err != nil {
		return err
	}
	*w = vfs.Written{Committed: vfs.FileSync, Verf: f.ref.e.verf, WCC: vfs.WCC{After: attr}}
	return nil
}

// Truncate implements vfs.File.
func (f *File) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	if err := f.may(ctx, true); err != nil {
		return vfs.WCC{}, err
	}
	wcc, err := f.below.Truncate(ctx, size)
	if err != nil {
		return wcc, err
	}
	return wcc, f.ref.stable(ctx, f.ref.h)
}

// Close implements vfs.File.
func (f *File) Close(ctx context.Context) error {
	err := f.below.Close(ctx)
	if f.closed.CompareAndSwap(false, true) {
		f.ref.leave()
	}
	return err
}
