package dir

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// eachFolder calls visit with every directory of the store, the root first. It skips a
// directory that is removed meanwhile. It recurses once for each segment that a key may
// have, and once more for the bucket.
func (s *Store) eachFolder(ctx context.Context, p string, visit func(f *folder) error) error {
	f, err := s.folder(ctx, p, false)
	if errors.Is(err, object.ErrNotExist) || isOneOf(err, unix.ENOTDIR, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.folders.unpin(f)
	if err := visit(f); err != nil {
		return err
	}
	if _, is := s.layout.Bucket(layout.Last(p)); is {
		return nil
	}
	for after, more := "", true; more; {
		var below []string
		err := s.gated(ctx, Meta, func() (err error) {
			below, more, err = s.names(f, listBatch, func(name string) bool { return name > after && s.layout.IsFolder(name) })
			return err
		})
		if err != nil {
			return err
		}
		for _, name := range below {
			if err := s.eachFolder(ctx, layout.Join(p, name), visit); err != nil {
				return err
			}
			after = name
		}
	}
	return nil
}
