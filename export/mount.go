package export

import (
	"context"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// Mount is Mount of the view that c has by [Table.As].
func (t *Table) Mount(ctx context.Context, c *vfs.Caller, p string) (vfs.Handle, vfs.Attr, error) {
	return t.As(c).(*View).Mount(ctx, p)
}

// Mount returns the handle and attributes of the directory that p names: an
// export, or a directory below one. The empty path is "/", and "/" stands for
// the only export where there is one alone that has another path. No such path
// is vfs.ErrNoEnt; what is not a directory is vfs.ErrNotDir; an export that the
// client may not use is vfs.ErrAccess, whatever there is below it. "." and ".."
// are taken out of p before it is looked up, and symbolic links within it are
// not followed: they are the client's to resolve.
func (v *View) Mount(ctx context.Context, p string) (vfs.Handle, vfs.Attr, error) {
	for range maxReloads {
		st := v.t.state.Load()
		e, rest, err := st.find(p)
		if err != nil {
			return vfs.Handle{}, vfs.Attr{}, err
		}
		s, ok, err := v.enter(ctx, st, e)
		if err != nil {
			return vfs.Handle{}, vfs.Attr{}, err
		}
		if ok {
			r := ref{seen: s, v: v}
			defer r.leave()
			return r.walk(ctx, rest)
		}
	}
	return vfs.Handle{}, vfs.Attr{}, vfs.ErrBusy
}

// walk finds the directory that the clean path rest names below the root.
func (r *ref) walk(ctx context.Context, rest string) (vfs.Handle, vfs.Attr, error) {
	h, attr, err := r.fs.Root(ctx)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" {
			continue
		}
		if h, attr, _, err = r.fs.Lookup(ctx, h, part); err != nil {
			return vfs.Handle{}, vfs.Attr{}, err
		}
		if !attr.Has(vfs.MaskType) {
			if attr, err = r.fs.GetAttr(ctx, h, vfs.MaskV3); err != nil {
				return vfs.Handle{}, vfs.Attr{}, err
			}
		}
		if attr.Type != vfs.TypeDir {
			return vfs.Handle{}, vfs.Attr{}, vfs.ErrNotDir
		}
	}
	sealed, err := r.seal(&h)
	return sealed, attr, err
}

// find returns the export with the longest path that p lies under, and what of
// p is below it.
func (s *state) find(p string) (*entry, string, error) {
	if len(p) > maxExportPath {
		return nil, "", vfs.ErrNameTooLong
	}
	if strings.ContainsRune(p, 0) {
		return nil, "", vfs.ErrInval
	}
	p = path.Clean("/" + p)
	var best *entry
	for i := range s.entries {
		e := &s.entries[i]
		if (best == nil || len(e.Path) > len(best.Path)) && under(p, e.Path) {
			best = e
		}
	}
	switch {
	case best != nil:
		return best, strings.TrimPrefix(p, best.Path), nil
	case p == "/" && len(s.entries) == 1:
		return &s.entries[0], "", nil
	}
	return nil, "", vfs.ErrNoEnt
}

// under reports whether the clean path p is dir or below it.
func under(p, dir string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}
