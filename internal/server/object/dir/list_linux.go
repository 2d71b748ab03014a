package dir

import (
	"context"
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// List implements [object.Store]. It reads the directories that the page touches,
// each to its end: a page costs time by how many names are in those, and memory by
// how many are on the page.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	page, err := s.list(ctx, prefix, after, limit)
	if err != nil {
		return object.Page{}, object.Fail("list", prefix, err)
	}
	return page, nil
}

func (s *Store) list(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	limit, err := object.CheckList(prefix, after, limit)
	if err != nil {
		return object.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return object.Page{}, err
	}
	if err := s.enter(); err != nil {
		return object.Page{}, err
	}
	defer s.leave()
	l := &lister{s: s, ctx: ctx, prefix: prefix, after: after, want: limit + 1}
	// What all keys that begin with prefix have in common needs no search.
	base, _ := path.Split(prefix)
	if err := l.level(base); err != nil {
		return object.Page{}, err
	}
	if len(l.page) > limit {
		return object.Page{Objects: l.page[:limit], More: true}, nil
	}
	return object.Page{Objects: l.page}, nil
}

// lister fills a page. It goes through the tree in the order of keys: in each
// directory objects, which are in buckets, and subdirectories, whose order is that
// of their names with a slash behind them.
type lister struct {
	s             *Store
	ctx           context.Context
	prefix, after string
	want          int // objects: one more than the page has, to know whether there are more
	page          []object.Info
}

func (l *lister) full() bool { return len(l.page) >= l.want }

// mayHold reports whether keys that begin with p can be on the page.
func (l *lister) mayHold(p string) bool {
	return (strings.HasPrefix(p, l.prefix) || strings.HasPrefix(l.prefix, p)) &&
		(p > l.after || strings.HasPrefix(l.after, p))
}

// level adds the objects whose keys begin with base, "" or ending in a slash. It
// recurses object.MaxSegments times at most.
func (l *lister) level(base string) error {
	f, err := l.s.folder(l.ctx, folderOf(base), false)
	if errors.Is(err, object.ErrNotExist) || isOneOf(err, unix.ENOTDIR, unix.ELOOP) {
		return nil // it has gone meanwhile, or is nothing of ours
	}
	if err != nil {
		return err
	}
	defer l.s.folders.unpin(f)
	buckets, subs, left, err := l.children(f, base, "")
	if err != nil {
		return err
	}
	for !l.full() {
		switch {
		case len(subs) > 0 && (len(buckets) == 0 || subs[0] < buckets[0]):
			// All names of that bucket, and of the ones behind it, are greater.
			err = l.level(base + subs[0])
			subs, left, err = l.nextSubs(f, base, subs, left, err)
		case len(buckets) > 0:
			subs, left, err = l.bucket(f, base, buckets[0], subs, left)
			buckets = buckets[1:]
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// folderOf is the folder of the directories of keys that begin with base.
func folderOf(base string) string {
	if base == "" {
		return "."
	}
	return strings.TrimSuffix(base, "/")
}

// nextSubs takes the first of subs off, and looks for further ones when none of
// those known is left.
func (l *lister) nextSubs(f *folder, base string, subs []string, left bool, err error) ([]string, bool, error) {
	if err != nil || len(subs) > 1 || !left {
		return subs[1:], left, err
	}
	_, more, left, err := l.children(f, base, subs[0])
	return more, left, err
}

// children returns the groups of the buckets in f and the names of the first
// subdirectories behind after, each with a slash, as far as they may hold
// something for the page, both sorted; and whether there are others of the latter.
func (l *lister) children(f *folder, base, after string) (buckets, subs []string, left bool, err error) {
	b, d := least{n: maxBuckets}, least{n: listBatch}
	err = l.s.gated(l.ctx, Meta, func() error {
		return l.s.eachName(f, func(name string) error {
			if g, ok := l.s.layout.isBucket(name); ok {
				if l.mayHold(base + g) {
					b.add(g)
				}
			} else if isSegment(name) && name+"/" > after && l.mayHold(base+name+"/") {
				d.add(name + "/")
			}
			return nil
		})
	})
	b.cut()
	d.cut()
	return b.all, d.all, d.left, err
}

// bucket adds the objects of one bucket, and at their places among them the
// subdirectories.
func (l *lister) bucket(f *folder, base, group string, subs []string, left bool) ([]string, bool, error) {
	b, err := l.s.folder(l.ctx, base+bucketMark+group, false)
	if errors.Is(err, object.ErrNotExist) || isOneOf(err, unix.ENOTDIR, unix.ELOOP) {
		return subs, left, nil
	}
	if err != nil {
		return subs, left, err
	}
	defer l.s.folders.unpin(b)
	for last, more := l.after, true; more && !l.full(); {
		var found []object.Info
		found, last, more, err = l.objects(b, base, group, last)
		for len(found) > 0 && err == nil && !l.full() {
			if len(subs) > 0 && base+subs[0] < found[0].Key {
				err = l.level(base + subs[0])
				subs, left, err = l.nextSubs(f, base, subs, left, err)
				continue
			}
			l.page = append(l.page, found[0])
			found = found[1:]
		}
		if err != nil {
			return subs, left, err
		}
	}
	return subs, left, nil
}

// objects returns the next objects of a bucket whose keys are greater than after,
// as many as the page needs at most; the last key that was looked at; and whether
// there are others.
func (l *lister) objects(b *folder, base, group, after string) (found []object.Info, last string, more bool, err error) {
	var names []string
	err = l.s.gated(l.ctx, Meta, func() (err error) {
		names, more, err = l.s.names(b, l.want-len(l.page), func(name string) bool {
			key := base + name
			return key > after && strings.HasPrefix(key, l.prefix) && isSegment(name) && l.s.layout.group(name) == group
		})
		return err
	})
	if err != nil || len(names) == 0 {
		return nil, after, false, err
	}
	for rest := names; len(rest) > 0; {
		batch := rest[:min(len(rest), listBatch)]
		rest = rest[len(batch):]
		err := l.s.gated(l.ctx, Meta, func() (err error) {
			found, err = appendInfos(found, b, base, batch)
			return err
		})
		if err != nil {
			return nil, after, false, err
		}
	}
	if b.unsettled() {
		if err := l.s.settle(l.ctx, b); err != nil {
			return nil, after, false, err
		}
	}
	return found, base + names[len(names)-1], more, nil
}

// appendInfos looks at names in b. What has gone meanwhile, and what is no file,
// is left out.
func appendInfos(found []object.Info, b *folder, base string, names []string) ([]object.Info, error) {
	for _, name := range names {
		st, err := lstat(b, name)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, fail("stat", err)
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			found = append(found, object.Info{Key: base + name, Size: max(0, st.Size-trailerSize), ModTime: modTime(&st)})
		}
	}
	return found, nil
}
