package snapshot

import (
	"context"
	"errors"
	"iter"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Each yields the snapshots of a store, of one name, or if that is empty of all, in the order of their keys, and then the
// checkpoints ([Ref.Partial]). A root that cannot be read is yielded with its error and the Ref that its key gives; if the error is
// [IsOwn] the others follow. Any other error is the last. A root that is removed meanwhile is left out.
func Each(ctx context.Context, s object.Store, name string) iter.Seq2[Ref, error] {
	return func(yield func(Ref, error) bool) {
		for ref, err := range EachRoot(ctx, s, name) {
			if err == nil {
				var read Ref
				if _, read, err = readRoot(ctx, s, ref.key()); err == nil {
					ref = read
				}
			}
			if errors.Is(err, object.ErrNotExist) {
				continue
			}
			if !yield(ref, err) || err != nil && !IsOwn(err) {
				return
			}
		}
	}
}

// IsOwn reports whether an error is of one object of a store, and others may well be read: it is damaged, something else has its place, another
// version has made it, this user may not read it, or the disk has failed there.
func IsOwn(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) || object.IsOwn(err)
}

// OfObject is the key of the object that an error is about, "" if it is about none, and what is wrong with that.
func OfObject(err error) (key string, why error) {
	if damage, ok := errors.AsType[*DamagedError](err); ok {
		return damage.Key, damage.Err
	}
	if of, ok := errors.AsType[*object.Error](err); ok {
		return of.Key, of.Err
	}
	return "", err
}
