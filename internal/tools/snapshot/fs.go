package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// FS returns the snapshot as a file system that nobody changes: every change is vfs.ErrROFS. It asks
// nobody for rights. The views of callers ([vfs.FS.As]) give each the rights that the modes and lists give it.
//
// An object that has several names has a handle for each; they have one file id. A handle is valid wherever
// the snapshot is opened. It has 25 bytes.
func (s *Snapshot) FS() vfs.FS { return &view{s: s} }

// view is the file system as one caller sees it.
type view struct {
	vfs.ReadOnly
	s *Snapshot
	c *vfs.Caller // nil: all is allowed
}

// The powers of the file system.
var (
	_ vfs.ACLer   = (*view)(nil)
	_ vfs.Xattrer = (*view)(nil)
)

// As implements vfs.FS.
func (v *view) As(c *vfs.Caller) vfs.FS { return &view{s: v.s, c: c} }

// Root implements vfs.FS.
func (v *view) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	at := rootPlace()
	return v.s.handle(&at), v.s.root.Attr, ctx.Err()
}

// Info implements vfs.FS.
func (v *view) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	if _, err := v.s.placeOf(&h); err != nil {
		return vfs.Info{}, err
	}
	i, err := v.ReadOnly.Info(ctx, h, want)
	i.HasLinks, i.HasSymlinks, i.LinkMax = true, true, math.MaxInt32
	i.TimeDelta = max(v.s.ref.TimeDelta, time.Nanosecond)
	if n := v.s.ref.Counts; n != nil && want&vfs.InfoSpace != 0 { // all of it is used
		i.Valid |= vfs.InfoSpace
		i.TotalBytes, i.TotalFiles = n["bytes"], n["files"]+n["dirs"]+n["symlinks"]+n["nodes"]
	}
	return i, err
}

// GetAttr implements vfs.FS.
func (v *view) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	e, _, err := v.s.entry(ctx, h)
	if err != nil {
		return vfs.Attr{}, err
	}
	return e.Attr, nil
}

// The bits of a mode.
const mayRead, mayExec = 4, 1

// may returns vfs.ErrAccess unless the caller has rights to an object.
func (v *view) may(ctx context.Context, e *Entry, want uint32) error {
	switch {
	case v.c == nil:
		return nil
	case v.c.UID == 0:
		if want&mayExec == 0 || e.Attr.Type == vfs.TypeDir || e.Attr.Mode&0o111 != 0 {
			return nil
		}
		return vfs.ErrAccess
	}
	x, err := v.s.extra(ctx, e)
	if err != nil {
		return err
	}
	list := posixacl.FromMode(e.Attr.Mode)
	if len(x.Access) > 0 {
		if list, err = posixacl.Canonical(entries(x.Access)); err != nil {
			return fmt.Errorf("access control list in the snapshot: %w", vfs.ErrAccess)
		}
	}
	if !posixacl.Permits(list, v.c, e.Attr.UID, e.Attr.GID, want) {
		return vfs.ErrAccess
	}
	return nil
}

// Access implements vfs.FS.
func (v *view) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (have vfs.Access, a vfs.Attr, err error) {
	e, _, err := v.s.entry(ctx, h)
	if err != nil {
		return 0, a, err
	}
	run := vfs.AccessExecute
	if e.Attr.Type == vfs.TypeDir {
		run = vfs.AccessLookup
	}
	if want&vfs.AccessRead != 0 && v.may(ctx, e, mayRead) == nil {
		have |= vfs.AccessRead
	}
	if want&run != 0 && v.may(ctx, e, mayExec) == nil {
		have |= run
	}
	return have, e.Attr, nil
}

// dir opens a directory to which the caller has rights.
func (v *view) dir(ctx context.Context, h vfs.Handle, want uint32) (*Entry, *dir, error) {
	e, at, err := v.s.entry(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	d, err := v.s.dir(ctx, e, at)
	if err == nil {
		err = v.may(ctx, e, want)
	}
	return e, d, err
}

// Lookup implements vfs.FS. ".." of a directory whose path is longer than vfs.MaxPath is vfs.ErrNotSupp.
func (v *view) Lookup(ctx context.Context, parent vfs.Handle, name string) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	in, d, err := v.dir(ctx, parent, mayExec)
	if err != nil {
		return h, a, dirAttr, err
	}
	if name == ".." {
		return v.up(ctx, in, d)
	}
	if err := vfs.CheckName(name); err != nil {
		return h, a, in.Attr, err
	}
	e, at, err := v.s.find(ctx, d, name)
	if err != nil {
		return h, a, in.Attr, err
	}
	return v.s.handle(&at), e.Attr, in.Attr, nil
}

// up finds the directory above d, by d's path.
func (v *view) up(ctx context.Context, in *Entry, d *dir) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	if d.head.Deep {
		return h, a, in.Attr, vfs.ErrNotSupp
	}
	path := string(d.head.Dir)
	up := 0
	for i := range path {
		if path[i] == '/' {
			up = i
		}
	}
	root := &view{s: v.s} // what is above was gone through already
	top, _, err := root.Root(ctx)
	if err != nil {
		return h, a, in.Attr, err
	}
	r, err := vfs.Resolve(ctx, root, top, path[:up], false)
	return r.Handle, r.Attr, in.Attr, err
}

// Readlink implements vfs.FS.
func (v *view) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	e, _, err := v.s.entry(ctx, h)
	if err != nil {
		return "", vfs.Attr{}, err
	}
	if e.Attr.Type != vfs.TypeSymlink {
		return "", e.Attr, vfs.ErrInval
	}
	return e.Target, e.Attr, nil
}

// Open implements vfs.FS.
func (v *view) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	o, err := vfs.Readable(ctx, v, at, how)
	if err != nil {
		return nil, o, err
	}
	e, _, err := v.s.entry(ctx, o.H)
	if err == nil {
		err = v.may(ctx, e, mayRead)
	}
	if err != nil {
		return nil, o, err
	}
	f, err := v.s.open(ctx, e)
	return f, o, err
}

// cookieBits is how much of a cookie is the place in a chunk; the rest is the number of the chunk.
const cookieBits = 24

// ReadDir implements vfs.FS.
func (v *view) ReadDir(ctx context.Context, h vfs.Handle, from vfs.Pos, _ vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		_, d, err := v.dir(ctx, h, mayRead)
		if err == nil && from.Cookie != 0 && from.Verf != vfs.Verifier(v.s.tag) {
			err = vfs.ErrBadCookie
		}
		if err != nil {
			yield(nil, err)
			return
		}
		at := int64(from.Cookie & (1<<cookieBits - 1))
		for i := from.Cookie >> cookieBits; i < uint64(len(d.list)); i++ {
			more, err := v.list(ctx, d, int(i), at, yield)
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				return
			}
			at = 0
		}
	}
}

// list yields the entries of a chunk from a place on. more is false if the iteration has ended.
func (v *view) list(ctx context.Context, d *dir, i int, from int64, yield func(*vfs.Entry, error) bool) (more bool, err error) {
	b, base, key, err := v.s.chunk(ctx, &d.list[i])
	if err != nil {
		return false, err
	}
	if from > int64(len(b)) || from > 0 && b[from-1] != '\n' {
		return false, vfs.ErrBadCookie
	}
	last, err := nameBefore(b, from)
	if err != nil {
		return false, damaged(key, err)
	}
	for off := from; off < int64(len(b)); {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		row, err := lineAt(b, off)
		if err != nil {
			return false, damaged(key, err)
		}
		e, err := decodeEntry(row, false)
		if err != nil {
			return false, damaged(key, err)
		}
		if e.Name <= last || !d.holds(i, e.Name) {
			return false, damaged(key, errOrder)
		}
		last = e.Name
		at := below(&d.at, &d.head, e.Name, d.list[i].part, base+off)
		off += int64(len(row)) + 1
		next := vfs.Pos{Cookie: uint64(i)<<cookieBits | uint64(off), Verf: vfs.Verifier(v.s.tag)}
		if !yield(&vfs.Entry{Name: []byte(e.Name), FileID: e.Attr.FileID, Next: next, Handle: v.s.handle(&at), Attr: e.Attr}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// extra returns what an object has beside its attributes.
func (s *Snapshot) extra(ctx context.Context, e *Entry) (*Extra, error) {
	if e.Extra.Far == nil {
		return &e.Extra, nil
	}
	b, err := s.piece(ctx, e.Extra.Far)
	if err != nil {
		return nil, err
	}
	x, err := decodeExtra(b)
	if err != nil {
		return nil, damaged(object.ContentKey(object.Sum(e.Extra.Far.Sum)), err)
	}
	return x, nil
}

// ACL implements vfs.ACLer.
func (v *view) ACL(ctx context.Context, h vfs.Handle) (vfs.ACL, error) {
	e, _, err := v.s.entry(ctx, h)
	if err != nil {
		return vfs.ACL{}, err
	}
	if e.Attr.Type == vfs.TypeSymlink {
		return vfs.ACL{}, vfs.ErrNotSupp
	}
	x, err := v.s.extra(ctx, e)
	if err != nil {
		return vfs.ACL{}, err
	}
	acl := vfs.ACL{Access: entries(x.Access), Default: entries(x.Default)}
	if len(acl.Access) == 0 {
		acl.Access = posixacl.FromMode(e.Attr.Mode)
	}
	return acl, nil
}

// SetACL is vfs.ErrROFS.
func (v *view) SetACL(ctx context.Context, _ vfs.Handle, _ vfs.ACL) error {
	return cmp.Or(ctx.Err(), error(vfs.ErrROFS))
}

// xattrs are the extended attributes of a handle.
func (v *view) xattrs(ctx context.Context, h vfs.Handle, want uint32) ([]Xattr, error) {
	e, _, err := v.s.entry(ctx, h)
	if err != nil {
		return nil, err
	}
	if e.Attr.Type != vfs.TypeReg && e.Attr.Type != vfs.TypeDir && e.Extra.empty() {
		return nil, vfs.ErrNotSupp
	}
	if want != 0 {
		if err := v.may(ctx, e, want); err != nil {
			return nil, err
		}
	}
	x, err := v.s.extra(ctx, e)
	if err != nil {
		return nil, err
	}
	return x.Xattrs, nil
}

// Xattrs implements vfs.Xattrer.
func (v *view) Xattrs(ctx context.Context, h vfs.Handle) (names []string, err error) {
	all, err := v.xattrs(ctx, h, 0)
	for _, a := range all {
		names = append(names, string(a.Name))
	}
	return names, err
}

// Xattr implements vfs.Xattrer.
func (v *view) Xattr(ctx context.Context, h vfs.Handle, name string) ([]byte, error) {
	all, err := v.xattrs(ctx, h, mayRead)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if string(a.Name) == name {
			return append([]byte{}, a.Value...), nil
		}
	}
	return nil, vfs.ErrNoXattr
}

// SetXattr is vfs.ErrROFS.
func (v *view) SetXattr(ctx context.Context, _ vfs.Handle, _ string, _ []byte, _ vfs.XattrHow) error {
	return cmp.Or(ctx.Err(), error(vfs.ErrROFS))
}

// RemoveXattr is vfs.ErrROFS.
func (v *view) RemoveXattr(ctx context.Context, _ vfs.Handle, _ string) error {
	return cmp.Or(ctx.Err(), error(vfs.ErrROFS))
}
