package export

import (
	"context"
	"iter"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Root returns the root of the export that Mount finds under "/".
func (v *View) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) { return v.Mount(ctx, "/") }

// Info implements vfs.FS.
func (v *View) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return vfs.Info{}, err
	}
	defer r.leave()
	return r.fs.Info(ctx, r.h, want)
}

// GetAttr implements vfs.FS.
func (v *View) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return vfs.Attr{}, err
	}
	defer r.leave()
	return r.fs.GetAttr(ctx, r.h, want)
}

// SetAttr implements vfs.FS.
func (v *View) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	r, err := v.change(ctx, &h)
	if err != nil {
		return vfs.WCC{}, err
	}
	defer r.leave()
	wcc, err := r.fs.SetAttr(ctx, r.h, set, guard)
	r.rejudged(&r.h, set.Valid, err)
	if err != nil {
		return wcc, err
	}
	return wcc, r.stable(ctx, r.h)
}

// writing are the rights that a read-only export does not give.
const writing = vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete

// Access implements vfs.FS.
func (v *View) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return 0, vfs.Attr{}, err
	}
	defer r.leave()
	if r.readOnly {
		want &^= writing
	}
	return r.fs.Access(ctx, r.h, want)
}

// Lookup implements vfs.FS. The root's parent is the root.
func (v *View) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	r, err := v.ref(ctx, &dir)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.Attr{}, err
	}
	defer r.leave()
	h, attr, dirAttr, err := r.fs.Lookup(ctx, r.h, name)
	if err != nil {
		return vfs.Handle{}, attr, dirAttr, err
	}
	h, err = r.seal(&h)
	return h, attr, dirAttr, err
}

// Readlink implements vfs.FS.
func (v *View) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	r, err := v.ref(ctx, &h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	defer r.leave()
	return r.fs.Readlink(ctx, r.h)
}

// Create implements vfs.FS.
func (v *View) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	r, err := v.change(ctx, &dir)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
	}
	defer r.leave()
	naming := r.giving(&r.h)
	h, attr, wcc, err := r.fs.Create(ctx, r.h, name, how)
	naming.end()
	if err != nil {
		return vfs.Handle{}, attr, wcc, err
	}
	r.rejudged(&h, how.Set.Valid, nil) // the object may have existed before
	if err := r.stable(ctx, h, r.h); err != nil {
		return vfs.Handle{}, attr, wcc, err
	}
	h, err = r.seal(&h)
	return h, attr, wcc, err
}

// Link implements vfs.FS.
func (v *View) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	r, d, err := v.pair(ctx, &h, &dir)
	if err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	defer r.leave()
	naming := r.giving(&d)
	attr, wcc, err := r.fs.Link(ctx, r.h, d, name)
	naming.end()
	if err != nil {
		return attr, wcc, err
	}
	return attr, wcc, r.stable(ctx, r.h, d)
}

// Remove implements vfs.FS.
func (v *View) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	r, err := v.change(ctx, &dir)
	if err != nil {
		return vfs.WCC{}, err
	}
	defer r.leave()
	var wcc vfs.WCC
	err = r.taking(ctx, r.h, name, vfs.Handle{}, func() (err error) {
		wcc, err = r.fs.Remove(ctx, r.h, name, isDir)
		return err
	})
	if err != nil {
		return wcc, err
	}
	return wcc, r.stable(ctx, r.h)
}

// Rename implements vfs.FS.
func (v *View) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	r, d, err := v.pair(ctx, &fromDir, &toDir)
	if err != nil {
		return from, to, err
	}
	defer r.leave()
	err = r.taking(ctx, d, toName, r.h, func() (err error) {
		from, to, err = r.fs.Rename(ctx, r.h, fromName, d, toName)
		return err
	})
	if err != nil {
		return from, to, err
	}
	// The new name first: a crash between the two syncs leaves both names, never none.
	if r.h == d {
		return from, to, r.stable(ctx, r.h)
	}
	return from, to, r.stable(ctx, d, r.h)
}

// ReadDir implements vfs.FS.
func (v *View) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		r, err := v.ref(ctx, &dir)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.leave()
		for entry, err := range r.fs.ReadDir(ctx, r.h, from, want, maxBytes) {
			if err != nil {
				yield(nil, err)
				return
			}
			// A handle too long to be sealed is left out: one object must not end the
			// listing of the others. A caller that looks the name up gets the error.
			if entry.Handle, err = r.seal(&entry.Handle); err != nil {
				entry.Handle = vfs.Handle{}
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}
