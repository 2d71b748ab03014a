package export

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// view is all exports of a table as one caller may see them.
type view struct {
	t      *Table
	caller *vfs.Caller
	// last is the export that was used last, as the caller sees it: most callers
	// use one, and looking their rights up again would cost every operation.
	last atomic.Pointer[exportView]
}

// exportView is an export as a caller sees it.
type exportView struct {
	e  *Export
	fs vfs.FS
}

// As returns the view that c has of all exports: a vfs.FS whose handles are
// sealed. Renames and links between exports are vfs.ErrXDev. Root is that of
// the export that Mount finds under "/".
func (t *Table) As(c *vfs.Caller) vfs.FS { return &view{t: t, caller: c} }

// As returns the view of another caller.
func (v *view) As(c *vfs.Caller) vfs.FS { return v.t.As(c) }

// ref is an opened handle: the export, the file system as the caller sees it,
// and the object in it.
type ref struct {
	e  *Export
	fs vfs.FS
	h  vfs.Handle
}

// ref opens a sealed handle.
func (v *view) ref(sealed *vfs.Handle) (ref, error) {
	e, h, err := v.t.open(sealed)
	if err != nil {
		return ref{}, err
	}
	return ref{e: e, fs: v.of(e), h: h}, nil
}

// of is e as the caller sees it.
func (v *view) of(e *Export) vfs.FS {
	if last := v.last.Load(); last != nil && last.e == e {
		return last.fs
	}
	seen := &exportView{e: e, fs: e.FS.As(v.caller)}
	v.last.Store(seen)
	return seen.fs
}

// change opens a sealed handle for an operation that changes something.
func (v *view) change(sealed *vfs.Handle) (ref, error) {
	r, err := v.ref(sealed)
	if err == nil && r.e.ReadOnly {
		return r, vfs.ErrROFS
	}
	return r, err
}

// stable makes the changes of the objects hs stable, if the file system leaves
// that to its caller. Its error is the operation's: what is not on the disk has
// not been done as far as the client may believe.
func (r *ref) stable(ctx context.Context, hs ...vfs.Handle) error {
	s, ok := vfs.As[vfs.Syncer](r.fs)
	if !ok {
		return nil
	}
	for _, h := range hs {
		if h.IsZero() {
			continue
		}
		if err := s.Sync(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	return v.t.Mount(ctx, v.caller, "/")
}

func (v *view) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	r, err := v.ref(&h)
	if err != nil {
		return vfs.Info{}, err
	}
	return r.fs.Info(ctx, r.h, want)
}

func (v *view) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	r, err := v.ref(&h)
	if err != nil {
		return vfs.Attr{}, err
	}
	return r.fs.GetAttr(ctx, r.h, want)
}

func (v *view) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	r, err := v.change(&h)
	if err != nil {
		return vfs.WCC{}, err
	}
	wcc, err := r.fs.SetAttr(ctx, r.h, set, guard)
	if err != nil {
		return wcc, err
	}
	return wcc, r.stable(ctx, r.h)
}

// writing are the rights that a read-only export does not give.
const writing = vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete

func (v *view) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	r, err := v.ref(&h)
	if err != nil {
		return 0, vfs.Attr{}, err
	}
	if r.e.ReadOnly {
		want &^= writing
	}
	return r.fs.Access(ctx, r.h, want)
}

func (v *view) Lookup(ctx context.Context, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	r, err := v.ref(&dir)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.Attr{}, err
	}
	h, attr, dirAttr, err := r.fs.Lookup(ctx, r.h, name)
	if err != nil {
		return vfs.Handle{}, attr, dirAttr, err
	}
	h, err = v.t.seal(r.e.ID, &h)
	return h, attr, dirAttr, err
}

func (v *view) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	r, err := v.ref(&h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	return r.fs.Readlink(ctx, r.h)
}

func (v *view) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	r, err := v.change(&dir)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, vfs.WCC{}, err
	}
	h, attr, wcc, err := r.fs.Create(ctx, r.h, name, how)
	if err != nil {
		return vfs.Handle{}, attr, wcc, err
	}
	if err := r.stable(ctx, h, r.h); err != nil {
		return vfs.Handle{}, attr, wcc, err
	}
	h, err = v.t.seal(r.e.ID, &h)
	return h, attr, wcc, err
}

// pair opens two handles of which both must lie in one export.
func (v *view) pair(a, b *vfs.Handle) (ra, rb ref, err error) {
	if ra, err = v.change(a); err != nil {
		return ra, rb, err
	}
	if rb, err = v.change(b); err != nil {
		return ra, rb, err
	}
	if ra.e != rb.e {
		return ra, rb, vfs.ErrXDev
	}
	return ra, rb, nil
}

func (v *view) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	r, d, err := v.pair(&h, &dir)
	if err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	attr, wcc, err := r.fs.Link(ctx, r.h, d.h, name)
	if err != nil {
		return attr, wcc, err
	}
	return attr, wcc, r.stable(ctx, r.h, d.h)
}

func (v *view) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	r, err := v.change(&dir)
	if err != nil {
		return vfs.WCC{}, err
	}
	wcc, err := r.fs.Remove(ctx, r.h, name, isDir)
	if err != nil {
		return wcc, err
	}
	return wcc, r.stable(ctx, r.h)
}

func (v *view) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	r, d, err := v.pair(&fromDir, &toDir)
	if err != nil {
		return from, to, err
	}
	if from, to, err = r.fs.Rename(ctx, r.h, fromName, d.h, toName); err != nil {
		return from, to, err
	}
	// The new name first: a crash in between leaves two names, never none.
	if r.h == d.h {
		return from, to, r.stable(ctx, r.h)
	}
	return from, to, r.stable(ctx, d.h, r.h)
}

func (v *view) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		r, err := v.ref(&dir)
		if err != nil {
			yield(nil, err)
			return
		}
		for entry, err := range r.fs.ReadDir(ctx, r.h, from, want, maxBytes) {
			if err != nil {
				yield(nil, err)
				return
			}
			// A handle too long to be sealed is left out, and whoever looks the
			// name up learns why: one object must not end the listing of others.
			if entry.Handle, err = v.t.seal(r.e.ID, &entry.Handle); err != nil {
				entry.Handle = vfs.Handle{}
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}
