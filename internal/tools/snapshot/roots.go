package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Key is that of the snapshot's root object.
func (r *Ref) Key() string { return r.key() }

// Roots lists the roots of a store without reading them, so also those that are damaged: of each Ref the name, the ID and Partial are
// set. Those of one name are together, by time; checkpoints come last. If name is empty it lists all. A key among them that can be none of a
// root, or a directory of theirs that cannot be listed, is a [DamagedError]: something may be hidden by it.
func Roots(ctx context.Context, s object.Store, name string) (roots []Ref, err error) {
	for r, err := range EachRoot(ctx, s, name) {
		if err != nil {
			return nil, err
		}
		if len(roots) == maxListed {
			return nil, fmt.Errorf("the store has more than %d snapshots: name one", maxListed)
		}
		roots = append(roots, r)
	}
	return roots, nil
}

// EachRoot yields what [Roots] lists. What is a [DamagedError] there is yielded as such, and the others follow. Any other error is the
// last.
func EachRoot(ctx context.Context, s object.Store, name string) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		prefixes := []string{rootPrefix, partialPrefix}
		if name != "" {
			if err := CheckName(name); err != nil {
				yield(Ref{}, err)
				return
			}
			prefixes = []string{rootKey(name, ""), partialPrefix + name}
		}
		for _, prefix := range prefixes {
			for key, err := range keysOf(ctx, s, prefix) {
				hidden, is := errors.AsType[*object.HiddenError](err)
				if err != nil && !is {
					yield(Ref{}, err)
					return
				}
				r, rerr := rootOf(key)
				switch {
				case is:
					err = damaged(key, hidden)
				case rerr != nil:
					err = damaged(key, rerr)
				case name != "" && r.Name != name:
					continue // it begins with this one
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// keysOf yields the keys of a prefix, in their order. One that something foreign has the place of is among them: reading it says
// that it is damaged. Where some cannot be listed, what all of them begin with is yielded with an [object.HiddenError], and the others
// follow. Any other error is the last.
func keysOf(ctx context.Context, s object.Store, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for after, more := "", true; more; {
			page, err := s.List(ctx, prefix, after, 0)
			if foreign, ok := errors.AsType[*object.ForeignError](err); ok && foreign.Key > after {
				page, err = object.Page{Objects: []object.Info{{Key: foreign.Key}}, More: true}, nil
			}
			if hidden, ok := errors.AsType[*object.HiddenError](err); ok && hidden.After > after {
				if after = hidden.After; !yield(hidden.Prefix, err) {
					return
				}
				continue
			}
			if err != nil {
				yield("", err)
				return
			}
			for i := range page.Objects {
				after = page.Objects[i].Key
				if !yield(after, nil) {
					return
				}
			}
			more = page.More && len(page.Objects) > 0
		}
	}
}

// rootOf is what the key of a root says of it; also with an error, as far as it goes.
func rootOf(key string) (Ref, error) {
	if rest, ok := strings.CutPrefix(key, partialPrefix); ok {
		return Ref{Meta: Meta{Name: rest}, Partial: true}, CheckName(rest)
	}
	name, id, _ := strings.Cut(strings.TrimPrefix(key, rootPrefix), "/")
	r := Ref{ID: id, Meta: Meta{Name: name}}
	if id == "" || strings.Contains(id, "/") {
		return r, fmt.Errorf("%q is %w: it is not of nfsbox", key, ErrName)
	}
	return r, CheckName(name)
}
