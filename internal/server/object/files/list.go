package files

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/vfs"
)

// List implements [object.Store].
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if err := s.enter(); err != nil {
		if _, bad := object.CheckList(prefix, after, limit); bad != nil {
			err = bad
		}
		return object.Page{}, object.Fail("list", prefix, err)
	}
	defer s.leave()
	page, err := s.layout.List(ctx, (*tree)(s), prefix, after, limit)
	if err != nil {
		return object.Page{}, object.Fail("list", prefix, err)
	}
	return page, nil
}

// tree is a store, as a listing needs it.
type tree Store

// Names implements [layout.Tree].
func (t *tree) Names(ctx context.Context, p string, f func(name string)) error {
	s := (*Store)(t)
	return s.in(ctx, p, false, func(d *folder) error { return s.names(ctx, d, f) })
}

// names calls f with the names in a folder, in no order; with some of them perhaps twice.
func (s *Store) names(ctx context.Context, d *folder, f func(name string)) error {
	return s.read(ctx, d, 0, func(e *vfs.Entry) { f(string(e.Name)) })
}

// read lists a folder. If the server does not know the place in it any more, or says that the
// folder is not there while names in it change, that begins anew: f may get a name twice.
func (s *Store) read(ctx context.Context, d *folder, want vfs.Mask, f func(e *vfs.Entry)) (err error) {
	for range maxTries {
		err = nil
		for e, bad := range s.looks.ReadDir(ctx, d.h, vfs.Pos{}, want, 0) {
			if err = bad; err == nil {
				f(e)
			}
		}
		if !errors.Is(err, vfs.ErrBadCookie) && !errors.Is(err, vfs.ErrNoEnt) {
			break
		}
	}
	return fail("list of "+d.path, err)
}

// listed is a name and what the listing says of it.
type listed struct {
	name string
	attr vfs.Attr
}

// Objects implements [layout.Tree].
func (t *tree) Objects(ctx context.Context, p string, n int, keep func(name string) bool) (found []object.Info, last string, more bool, err error) {
	s := (*Store)(t)
	err = s.in(ctx, p, false, func(d *folder) error {
		found, last, more, err = s.objects(ctx, d, n, keep)
		return err
	})
	return found, last, more, err
}

func (s *Store) objects(ctx context.Context, d *folder, n int, keep func(name string) bool) (found []object.Info, last string, more bool, err error) {
	l := layout.Least[listed]{N: n, Compare: func(a, b listed) int { return strings.Compare(a.name, b.name) }}
	err = s.read(ctx, d, looked, func(e *vfs.Entry) {
		if name := string(e.Name); keep(name) {
			l.Add(listed{name, e.Attr})
		}
	})
	if err != nil {
		return nil, "", false, err
	}
	l.Cut()
	all := slices.CompactFunc(l.All, func(a, b listed) bool { return a.name == b.name })
	unstable := false
	for i := range all {
		a := &all[i].attr
		if !a.Has(looked) || a.Type != vfs.TypeReg { // or it has become another meanwhile
			if _, *a, err = s.lookup(ctx, d, all[i].name); errors.Is(err, vfs.ErrNoEnt) || gone(err) {
				continue
			}
			if err != nil {
				return nil, "", false, err
			}
			if a.Type != vfs.TypeReg {
				return nil, "", false, layout.Foreign(d.path, all[i].name, "a "+a.Type.String())
			}
		}
		unstable = unstable || !s.folders.isSettled(d, a.Ctime)
		size := max(int64(a.Size), layout.TrailerSize) - layout.TrailerSize
		found = append(found, object.Info{Key: all[i].name, Size: size, ModTime: a.Mtime})
	}
	if unstable {
		if err := s.settle(ctx, d); err != nil {
			return nil, "", false, err
		}
	}
	if len(all) > 0 {
		last = all[len(all)-1].name
	}
	return found, last, l.Left, nil
}
