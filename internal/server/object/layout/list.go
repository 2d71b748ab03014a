package layout

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// listBatch is how many subdirectories a listing remembers at a time; when they are used
	// up, it reads the directory again.
	listBatch = 256

	// maxBuckets is how many buckets a directory can have: as many as names have
	// beginnings. Further directories that look like buckets are left out.
	maxBuckets = 1440

	// maxForeign is how often the objects before something foreign are asked for, as another was met among those.
	// Then that is the error of the listing.
	maxForeign = 4
)

// Tree is what a listing needs of a store. A folder is a path below its root, "." for that. If it
// does not exist, both methods return object.ErrNotExist; if it is no directory, or is behind
// something that is none, [object.ErrForeign].
type Tree interface {
	// Names calls f with every name in a folder, in no order. What comes or goes meanwhile
	// may be among them or not.
	Names(ctx context.Context, folder string, f func(name string)) error

	// Objects returns the n objects of a bucket with the smallest names of those that pass
	// keep, in order, each with Size and ModTime, and its name as its Key; the last name that
	// was looked at, "" for none; and whether there are others. A name that has gone meanwhile
	// is left out, and one that is no file is [Foreign].
	Objects(ctx context.Context, bucket string, n int, keep func(name string) bool) (found []object.Info, last string, more bool, err error)
}

// List returns a page of the objects in t, as [object.Store] has it. It reads the directories
// that the page touches, each to its end: a page costs time by how many names are in those, and
// memory by how many are on the page.
func (l Layout) List(ctx context.Context, t Tree, prefix, after string, limit int) (object.Page, error) {
	limit, err := object.CheckList(prefix, after, limit)
	if err != nil {
		return object.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return object.Page{}, err
	}
	w := &lister{l: l, t: t, ctx: ctx, prefix: prefix, after: after, want: limit + 1}
	// What all keys that begin with prefix have in common needs no search.
	base, _ := path.Split(prefix)
	if !w.mayHold(base) {
		return object.Page{}, nil
	}
	err = w.level(base)
	_, hidden := errors.AsType[*object.HiddenError](err)
	foreign := w.foreign != nil && errors.Is(err, w.foreign)
	switch {
	case (foreign || hidden) && len(w.page) > 0: // the next page begins there
		return object.Page{Objects: w.page[:min(limit, len(w.page))], More: true}, nil
	case err != nil:
		return object.Page{}, err
	case len(w.page) > limit:
		return object.Page{Objects: w.page[:limit], More: true}, nil
	}
	return object.Page{Objects: w.page}, nil
}

// Foreign is the error of a name in a bucket that is no file.
func Foreign(bucket, name, what string) error {
	return &object.ForeignError{Key: Base(bucket) + name, What: fmt.Sprintf("%q is %s", Join(bucket, name), what)}
}

// lister fills a page. It goes through the tree in the order of keys: in each
// directory objects, which are in buckets, and subdirectories, whose order is that
// of their names with a slash behind them.
type lister struct {
	l             Layout
	t             Tree
	ctx           context.Context
	prefix, after string
	want          int // objects: one more than the page has, to know whether there are more
	page          []object.Info
	foreign       *object.ForeignError // behind the page; nil: nothing was met
}

func (w *lister) full() bool { return len(w.page) >= w.want }

// mayHold reports whether keys that begin with p can be on the page.
func (w *lister) mayHold(p string) bool {
	return (strings.HasPrefix(p, w.prefix) || strings.HasPrefix(w.prefix, p)) &&
		(p > w.after || strings.HasPrefix(w.after, p))
}

// level adds the objects whose keys begin with base, "" or ending in a slash. It
// recurses object.MaxSegments times at most.
func (w *lister) level(base string) error {
	buckets, subs, left, err := w.children(base, "")
	if errors.Is(err, object.ErrNotExist) {
		return nil // nothing was ever put there
	}
	if err != nil {
		return w.hidden(base, err)
	}
	for !w.full() {
		switch {
		case len(subs) > 0 && (len(buckets) == 0 || subs[0] < buckets[0]):
			// All names of that bucket, and of the ones behind it, are greater.
			err = w.level(base + subs[0])
			subs, left, err = w.nextSubs(base, subs, left, err)
		case len(buckets) > 0:
			subs, left, err = w.bucket(base, buckets[0], subs, left)
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
func (w *lister) nextSubs(base string, subs []string, left bool, err error) ([]string, bool, error) {
	if err != nil || len(subs) > 1 || !left {
		return subs[1:], left, err
	}
	_, more, left, err := w.children(base, subs[0])
	return more, left, err
}

// children returns the groups of the buckets below base and the names of the first
// subdirectories behind after, each with a slash, as far as they may hold
// something for the page, both sorted; and whether there are others of the latter.
func (w *lister) children(base, after string) (buckets, subs []string, left bool, err error) {
	b := Least[string]{N: maxBuckets, Compare: strings.Compare}
	d := Least[string]{N: listBatch, Compare: strings.Compare}
	err = w.t.Names(w.ctx, folderOf(base), func(name string) {
		if g, ok := w.l.Bucket(name); ok {
			if w.mayHold(base + g) {
				b.Add(g)
			}
		} else if IsSegment(name) && name+"/" > after && w.mayHold(base+name+"/") {
			d.Add(name + "/")
		}
	})
	b.Cut()
	d.Cut()
	return once(b.All), once(d.All), d.Left, err
}

// once drops what a directory lists twice: servers do when it changes meanwhile.
func once(sorted []string) []string { return slices.Compact(sorted) }

// bucket adds the objects of one bucket, and at their places among them the
// subdirectories.
func (w *lister) bucket(base, group string, subs []string, left bool) ([]string, bool, error) {
	for last, more := w.after, true; more && !w.full(); {
		found, name, others, err := w.objects(base, group, last)
		if errors.Is(err, object.ErrNotExist) {
			return subs, left, nil // it has gone meanwhile
		}
		if err != nil && len(group) == w.l.Fanout && !left && !slices.ContainsFunc(subs, func(s string) bool { return strings.HasPrefix(s, group) }) {
			err = w.hidden(base+group, err) // no other directory has such keys
		}
		for len(found) > 0 && err == nil && !w.full() {
			if len(subs) > 0 && subs[0] < found[0].Key {
				err = w.level(base + subs[0])
				subs, left, err = w.nextSubs(base, subs, left, err)
				continue
			}
			found[0].Key = base + found[0].Key
			if w.foreign != nil && found[0].Key == w.foreign.Key {
				return subs, left, w.foreign
			}
			w.page = append(w.page, found[0])
			found = found[1:]
		}
		if err != nil {
			return subs, left, err
		}
		last, more = base+name, others && name != ""
	}
	return subs, left, nil
}

// hidden is the error of a directory that has all keys that begin with prefix. If it is the directory's own, a listing may go on behind
// them.
func (w *lister) hidden(prefix string, err error) error {
	after, ok := behind(prefix)
	if !ok || after <= w.after || !object.IsOwn(err) {
		return err
	}
	return &object.HiddenError{Prefix: prefix, After: after, Err: err}
}

// behind is the least that may be a prefix of keys and is greater than all keys that begin with prefix; ok is false if there is none.
func behind(prefix string) (after string, ok bool) {
	for n := len(prefix); n > 0; n-- {
		for c := prefix[n-1] + 1; c <= 'z'; c++ {
			if after = prefix[:n-1] + string(c); object.CheckPrefix(after) == nil {
				return after, true
			}
		}
	}
	return "", false
}

// objects are the next objects of a bucket. If something else is met in the place of one, those before it, and that one: it is
// w.foreign.
func (w *lister) objects(base, group, last string) (found []object.Info, name string, others bool, err error) {
	bucket, n := base+BucketMark+group, w.want-len(w.page)
	keep := func(name string) bool {
		key := base + name
		return key > last && strings.HasPrefix(key, w.prefix) && IsSegment(name) && w.l.Group(name) == group
	}
	var foreign *object.ForeignError
	for range maxForeign {
		found, name, others, err = w.t.Objects(w.ctx, bucket, n, keep)
		met, ok := errors.AsType[*object.ForeignError](err)
		if !ok {
			break
		}
		foreign = met
		all := keep
		keep = func(name string) bool { return base+name < met.Key && all(name) }
	}
	switch {
	case foreign == nil:
	case errors.Is(err, foreign): // what is before it is not known
		err = fmt.Errorf("%w: %s", object.ErrForeign, foreign.What)
	case err == nil && !others && len(found) < n:
		w.foreign = foreign
		found = append(found, object.Info{Key: strings.TrimPrefix(foreign.Key, base)})
	}
	return found, name, others, err
}
