package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Each yields the snapshots of a store, of one name, or if that is empty of all, in the order of their keys, and then the
// checkpoints ([Ref.Partial]). A root that cannot be read is yielded with its error and the Ref that its key gives; if the error is
// [OfRoot] the others follow. Any other error is the last. A root that is removed meanwhile is left out.
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
			if !yield(ref, err) || err != nil && !OfRoot(err) {
				return
			}
		}
	}
}

// OfRoot reports whether an error of a root is its own, and others may well be read: it is damaged, something else has its place, another
// version has made it, this user may not read it, or the disk has failed there.
func OfRoot(err error) bool {
	for _, own := range []error{ErrDamaged, ErrVersion, fs.ErrPermission, syscall.EIO} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}
