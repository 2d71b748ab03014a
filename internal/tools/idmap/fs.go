package idmap

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Of returns f as m shows it; f itself if m is empty. It is for reading: what is changed through
// it is given to f as it is, and callers of As are those of f.
func (m *Map) Of(f vfs.FS) vfs.FS {
	if m.Empty() {
		return f
	}
	return &mapped{f, m}
}

// mapped is an FS as a map shows it.
type mapped struct {
	vfs.FS
	m *Map
}

var (
	_ vfs.Holder    = (*mapped)(nil)
	_ vfs.Unwrapper = (*mapped)(nil)
	_ vfs.Keeper    = (*mapped)(nil)
	_ vfs.ACLer     = (*mapped)(nil)
)

// Unwrap implements vfs.Unwrapper.
func (f *mapped) Unwrap() any { return f.FS }

// Holds implements vfs.Holder. Powers that return attributes, or files that do, would lead around the map.
func (f *mapped) Holds(power any) bool {
	switch power.(type) {
	case *vfs.Walker, *vfs.Putter, *vfs.HostOpener:
		return false
	case *vfs.ACLer:
		return vfs.Has[vfs.ACLer](f.FS)
	}
	return true
}

// Anew implements vfs.Keeper.
func (f *mapped) Anew() vfs.FS { return &mapped{vfs.Anew(f.FS), f.m} }

// As implements vfs.FS.
func (f *mapped) As(c *vfs.Caller) vfs.FS { return &mapped{f.FS.As(c), f.m} }

// attr maps the owners in a.
func (m *Map) attr(a *vfs.Attr) {
	if a.Has(vfs.MaskUID) {
		a.UID = m.users.of(a.UID)
	}
	if a.Has(vfs.MaskGID) {
		a.GID = m.groups.of(a.GID)
	}
}

// Root implements vfs.FS.
func (f *mapped) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	h, a, err := f.FS.Root(ctx)
	f.m.attr(&a)
	return h, a, err
}

// GetAttr implements vfs.FS.
func (f *mapped) GetAttr(ctx context.Context, h vfs.Handle, want vfs.Mask) (vfs.Attr, error) {
	a, err := f.FS.GetAttr(ctx, h, want)
	f.m.attr(&a)
	return a, err
}

// SetAttr implements vfs.FS.
func (f *mapped) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	w, err := f.FS.SetAttr(ctx, h, set, guard)
	f.m.attr(&w.After)
	return w, err
}

// Access implements vfs.FS.
func (f *mapped) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	may, a, err := f.FS.Access(ctx, h, want)
	f.m.attr(&a)
	return may, a, err
}

// Lookup implements vfs.FS.
func (f *mapped) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, d vfs.Attr, err error) {
	h, a, d, err = f.FS.Lookup(ctx, dir, name)
	f.m.attr(&a)
	f.m.attr(&d)
	return h, a, d, err
}

// Readlink implements vfs.FS.
func (f *mapped) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	target, a, err := f.FS.Readlink(ctx, h)
	f.m.attr(&a)
	return target, a, err
}

// Create implements vfs.FS.
func (f *mapped) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	h, a, w, err := f.FS.Create(ctx, dir, name, how)
	f.m.attr(&a)
	f.m.attr(&w.After)
	return h, a, w, err
}

// Link implements vfs.FS.
func (f *mapped) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	a, w, err := f.FS.Link(ctx, h, dir, name)
	f.m.attr(&a)
	f.m.attr(&w.After)
	return a, w, err
}

// Remove implements vfs.FS.
func (f *mapped) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	w, err := f.FS.Remove(ctx, dir, name, isDir)
	f.m.attr(&w.After)
	return w, err
}

// Rename implements vfs.FS.
func (f *mapped) Rename(ctx context.Context, fromDir vfs.Handle, fromName string, toDir vfs.Handle, toName string) (from, to vfs.WCC, err error) {
	from, to, err = f.FS.Rename(ctx, fromDir, fromName, toDir, toName)
	f.m.attr(&from.After)
	f.m.attr(&to.After)
	return from, to, err
}

// Open implements vfs.FS.
func (f *mapped) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	x, o, err := f.FS.Open(ctx, at, how)
	f.m.attr(&o.Attr)
	f.m.attr(&o.Dir.After)
	if x == nil {
		return nil, o, err
	}
	return &file{x, f.m}, o, err
}

// ReadDir implements vfs.FS.
func (f *mapped) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, maxBytes uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		for e, err := range f.FS.ReadDir(ctx, dir, from, want, maxBytes) {
			if err == nil {
				own := *e // the listing may be kept by others
				f.m.attr(&own.Attr)
				e = &own
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// ACL implements vfs.ACLer.
func (f *mapped) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	x, ok := vfs.As[vfs.ACLer](f.FS)
	if !ok {
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	acl, err := x.ACL(ctx, h)
	return vfs.ACL{Access: f.m.list(acl.Access), Default: f.m.list(acl.Default)}, err
}

// SetACL implements vfs.ACLer.
func (f *mapped) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	x, ok := vfs.As[vfs.ACLer](f.FS)
	if !ok {
		return vfs.ErrNotSupp
	}
	return x.SetACL(ctx, h, acl)
}

// list maps the named users and groups of a list.
func (m *Map) list(list []vfs.ACLEntry) []vfs.ACLEntry {
	list = slices.Clone(list)
	for i := range list {
		switch e := &list[i]; e.Tag {
		case vfs.ACLUser:
			e.ID = m.users.of(e.ID)
		case vfs.ACLGroup:
			e.ID = m.groups.of(e.ID)
		}
	}
	return list
}

// file is an open file of such an FS.
type file struct {
	vfs.File
	m *Map
}

// Unwrap implements vfs.Unwrapper.
func (x *file) Unwrap() any { return x.File }

// ReadAt implements vfs.File.
func (x *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	n, eof, err = x.File.ReadAt(ctx, p, off, post)
	if post != nil {
		x.m.attr(post)
	}
	return n, eof, err
}

// WriteAt implements vfs.File.
func (x *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	n, err := x.File.WriteAt(ctx, p, off, how, w)
	x.m.attr(&w.WCC.After)
	return n, err
}

// Commit implements vfs.File.
func (x *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := x.File.Commit(ctx, off, n, w)
	x.m.attr(&w.WCC.After)
	return err
}

// Truncate implements vfs.File.
func (x *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	w, err := x.File.Truncate(ctx, size)
	x.m.attr(&w.After)
	return w, err
}
