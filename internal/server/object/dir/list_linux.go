package dir

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
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

// listed opens a folder for a listing.
func (s *Store) listed(ctx context.Context, p string) (*folder, error) {
	f, err := s.folder(ctx, p, false)
	if isOneOf(err, unix.ENOTDIR, unix.ELOOP) {
		err = foreign(p, "no directory")
	}
	return f, err
}

func foreign(path, what string) error {
	return fmt.Errorf("%w: %q is %s", object.ErrForeign, path, what)
}

// Names implements [layout.Tree].
func (t *tree) Names(ctx context.Context, p string, f func(name string)) error {
	s := (*Store)(t)
	d, err := s.listed(ctx, p)
	if err != nil {
		return err
	}
	defer s.folders.unpin(d)
	return s.gated(ctx, Meta, func() error {
		return s.eachName(d, func(name string) error { f(name); return nil })
	})
}

// Objects implements [layout.Tree].
func (t *tree) Objects(ctx context.Context, p string, n int, keep func(name string) bool) (found []object.Info, last string, more bool, err error) {
	s := (*Store)(t)
	b, err := s.listed(ctx, p)
	if err != nil {
		return nil, "", false, err
	}
	defer s.folders.unpin(b)
	var names []string
	err = s.gated(ctx, Meta, func() (err error) {
		names, more, err = s.names(b, n, keep)
		return err
	})
	if err != nil || len(names) == 0 {
		return nil, "", false, err
	}
	for rest := names; len(rest) > 0; {
		batch := rest[:min(len(rest), listBatch)]
		rest = rest[len(batch):]
		err := s.gated(ctx, Meta, func() (err error) {
			found, err = appendInfos(found, b, batch)
			return err
		})
		if err != nil {
			return nil, "", false, err
		}
	}
	if b.unsettled() {
		if err := s.settle(ctx, b); err != nil {
			return nil, "", false, err
		}
	}
	return found, names[len(names)-1], more, nil
}

// appendInfos looks at names in b. What has gone meanwhile is left out.
func appendInfos(found []object.Info, b *folder, names []string) ([]object.Info, error) {
	for _, name := range names {
		st, err := lstat(b, name)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, fail("stat", err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil, layout.Foreign(b.path, name, "no file")
		}
		found = append(found, object.Info{Key: name, Size: max(0, st.Size-layout.TrailerSize), ModTime: modTime(&st)})
	}
	return found, nil
}
