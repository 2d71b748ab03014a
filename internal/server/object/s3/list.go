package s3

import (
	"context"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
)

// List implements [object.Store].
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	limit, err := object.CheckList(prefix, after, limit)
	if err == nil {
		err = s.enter(ctx)
	}
	if err != nil {
		return object.Page{}, object.Fail("list", prefix, err)
	}
	defer s.calls.Done()
	p, err := s.list(ctx, s.prefix()+prefix, after, limit)
	return p, object.Fail("list", prefix, err)
}

func (s *Store) list(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if after != "" {
		after = s.name(after)
	}
	token := ""
	for range bucket.MaxEmpty {
		page, err := s.c.List(ctx, bucket.ListOptions{Prefix: prefix, After: after, Token: token, Limit: limit})
		if err != nil {
			return object.Page{}, err
		}
		p := object.Page{More: page.More}
		for _, o := range page.Objects {
			info, ok, err := s.listed(&o)
			if err != nil {
				return object.Page{}, err
			}
			if ok {
				p.Objects = append(p.Objects, info)
			}
		}
		if len(p.Objects) > 0 || !p.More {
			return p, nil
		}
		token = page.Token
	}
	return object.Page{}, s.c.Foreign(fmt.Sprintf("%d pages of a listing have no object, and there are more", bucket.MaxEmpty))
}

// listed is an object of a listing. It is false for what is not the store's and stands in nobody's way: folders
// that consoles make, and what Open has tried a store with.
func (s *Store) listed(o *bucket.Listed) (object.Info, bool, error) {
	name := strings.TrimPrefix(o.Name, s.prefix())
	if strings.HasPrefix(name, probePrefix) || o.Size == 0 && (name == "" || strings.HasSuffix(name, "/")) {
		return object.Info{}, false, nil
	}
	key, ok := strings.CutSuffix(name, tail)
	if !ok || object.CheckKey(key) != nil {
		return object.Info{}, false, fmt.Errorf("%w: %q in the bucket was not put there by nfsbox: move it away, or use another PREFIX",
			object.ErrForeign, s.c.Show(o.Name))
	}
	return object.Info{Key: key, Size: o.Size, ModTime: o.Mod}, true, nil
}
