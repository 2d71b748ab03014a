package snapshot

import (
	"context"
	"errors"
	"iter"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Each yields the snapshots of a store, of one name, or if that is empty of all, in the order of their keys, and then the
// checkpoints ([Ref.Partial]). A root that cannot be read is yielded as a [DamagedError] or [ErrVersion], with the Ref that its key gives, and the
// others follow. Any other error is the last. One that is removed meanwhile is left out.
func Each(ctx context.Context, s object.Store, name string) iter.Seq2[Ref, error] {
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
			if !eachOf(ctx, s, prefix, name, yield) {
				return
			}
		}
	}
}

// eachOf yields those of a prefix. more is false if the iteration has ended.
func eachOf(ctx context.Context, s object.Store, prefix, name string, yield func(Ref, error) bool) (more bool) {
	for info, err := range object.All(ctx, s, prefix) {
		if err != nil {
			yield(Ref{}, err)
			return false
		}
		if strings.HasPrefix(info.Key, partialPrefix) && name != "" && path.Base(info.Key) != name {
			continue // of a name that begins with this one
		}
		_, ref, err := readRoot(ctx, s, info.Key)
		if errors.Is(err, object.ErrNotExist) {
			continue
		}
		if err != nil {
			ref = refOf(info.Key)
		}
		if !yield(ref, err) || err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion) {
			return false
		}
	}
	return true
}

// refOf is what the key of a root says.
func refOf(key string) Ref {
	if name, is := strings.CutPrefix(key, partialPrefix); is {
		return Ref{Meta: Meta{Name: name}, Partial: true}
	}
	name, id, _ := strings.Cut(strings.TrimPrefix(key, rootPrefix), "/")
	return Ref{ID: id, Meta: Meta{Name: name}}
}
