package export

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

func (v *view) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	sealed := &at.H
	if at.Name != "" {
		sealed = &at.Dir
	}
	r, err := v.ref(sealed)
	if err != nil {
		return nil, vfs.Opened{}, err
	}
	changes := how.Create != nil || how.Trunc
	if r.e.ReadOnly && (changes || how.Access&vfs.ShareWrite != 0) {
		return nil, vfs.Opened{}, vfs.ErrROFS
	}
	if at.Name != "" {
		at.Dir = r.h
	} else {
		at.H = r.h
	}
	f, opened, err := r.fs.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	if opened, err = v.opened(ctx, &r, opened, changes); err != nil {
		// The open's own error says more than that of giving it up.
		_ = f.Close(ctx)
		return nil, opened, err
	}
	return &file{File: f, ref: r}, opened, nil
}

// opened makes stable what the open created and seals what it found.
func (v *view) opened(ctx context.Context, r *ref, o vfs.Opened, changes bool) (vfs.Opened, error) {
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
	r.h = o.H
	o.H, err = v.t.seal(r.e.ID, &o.H)
	return o, err
}

// file is an open file of an export. It adds stability to Truncate; reads and
// writes go straight through, since Open has decided which of them there may be.
type file struct {
	vfs.File
	ref ref
}

// Unwrap gives optional powers of the file below, which were granted by Open.
func (f *file) Unwrap() any { return f.File }

func (f *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	wcc, err := f.File.Truncate(ctx, size)
	if err != nil {
		return wcc, err
	}
	return wcc, f.ref.stable(ctx, f.ref.h)
}
