package export

import (
	"context"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// Mount is [View.Mount] of the view that As returns for c.
func (t *Table) Mount(ctx context.Context, c *vfs.Caller, p string) (vfs.Handle, vfs.Attr, error) {
	return t.As(c).(*View).Mount(ctx, p)
}

// Mount returns the handle and attributes of the directory that p names: an
// export, or a directory below one. The empty path is "/". If there is only one
// export, "/" names it, whatever its path. No such path is vfs.ErrNoEnt; what is not a
// directory is vfs.ErrNotDir. An export that the client may not use is vfs.ErrAccess,
// whether or not the path exists below it. "." and ".." are taken out of p before it
// is looked up.
//
// Symbolic links are followed, as mountd of Linux does, but never out of the export:
// that is vfs.ErrAccess. The target of an absolute link is a path as clients mount it.
// More than 40 links are vfs.ErrInval.
func (v *View) Mount(ctx context.Context, p string) (vfs.Handle, vfs.Attr, error) {
	for range maxReloads {
		st := v.t.state.Load()
		e, rest, err := st.find(p)
		if err != nil {
			return vfs.Handle{}, vfs.Attr{}, err
		}
		s, ok, err := v.enter(ctx, st, e)
		if err != nil {
			if v.refuse(s, s.why, p) {
				err = refusedError{vfs.ErrAccess}
			}
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

// maxMountLinks bounds the symbolic links of one path, as path_resolution(7) does for
// Linux.
const maxMountLinks = 40

// step is a directory on the way from the root.
type step struct {
	h    vfs.Handle
	attr vfs.Attr
}

// walk finds the directory that the path rest names, from the export's root on.
func (r *ref) walk(ctx context.Context, rest string) (vfs.Handle, vfs.Attr, error) {
	root, attr, err := r.fs.Root(ctx)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	way := []step{{root, attr}}
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			if way = way[:len(way)-1]; len(way) == 0 {
				return vfs.Handle{}, vfs.Attr{}, vfs.ErrAccess
			}
			continue
		}
		next, target, err := r.step(ctx, way[len(way)-1].h, name)
		switch {
		case err != nil:
			return vfs.Handle{}, vfs.Attr{}, err
		case target == "":
			way = append(way, next)
			continue
		}
		if links++; links > maxMountLinks {
			return vfs.Handle{}, vfs.Attr{}, vfs.ErrInval
		}
		if target, err = r.inside(target, &way); err != nil {
			return vfs.Handle{}, vfs.Attr{}, err
		}
		rest = target + "/" + rest
	}
	at := &way[len(way)-1]
	sealed, err := r.seal(&at.h)
	return sealed, at.attr, err
}

// step looks name up in dir. It returns a directory, or the target of a symbolic link.
func (r *ref) step(ctx context.Context, dir vfs.Handle, name string) (next step, target string, err error) {
	if next.h, next.attr, _, err = r.fs.Lookup(ctx, dir, name); err != nil {
		return step{}, "", err
	}
	if !next.attr.Has(vfs.MaskType) {
		if next.attr, err = r.fs.GetAttr(ctx, next.h, vfs.MaskV3); err != nil {
			return step{}, "", err
		}
	}
	switch next.attr.Type {
	case vfs.TypeDir:
		return next, "", nil
	case vfs.TypeSymlink:
		target, _, err = r.fs.Readlink(ctx, next.h)
		if err == nil && (target == "" || len(target) > maxExportPath || strings.ContainsRune(target, 0)) {
			err = vfs.ErrInval
		}
		return step{}, target, err
	}
	return step{}, "", vfs.ErrNotDir
}

// inside returns a link's target as a path from the end of way. For an absolute target,
// which is a path as clients mount it, way is first cut to the export's root.
func (r *ref) inside(target string, way *[]step) (string, error) {
	if !strings.HasPrefix(target, "/") {
		return target, nil
	}
	if target = path.Clean(target); !under(target, r.e.Path) {
		return "", vfs.ErrAccess
	}
	*way = (*way)[:1]
	return strings.TrimPrefix(target, r.e.Path), nil
}

// find returns the export with the longest path that p lies under, and the rest of p
// below it.
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
