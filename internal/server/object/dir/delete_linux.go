package dir

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Delete implements [object.Store]. Directories remain, even empty ones: see the package.
func (s *Store) Delete(ctx context.Context, key string) error {
	return object.Fail("delete", key, s.delete(ctx, key))
}

func (s *Store) delete(ctx context.Context, key string) error {
	if err := object.CheckKey(key); err != nil {
		return err
	}
	if err := s.enterChange(); err != nil {
		return err
	}
	defer s.leave()
	p, name := s.layout.Split(key)
	f, err := s.folder(ctx, p, false)
	if errors.Is(err, object.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.folders.unpin(f)
	gone := false
	err = s.change(ctx, f, name, func() (bool, error) {
		err := s.sys.Unlinkat(f.fd, name, 0)
		gone = errors.Is(err, unix.ENOENT)
		return err == nil, fail("unlink", err)
	})
	if gone { // removed by a call whose sync may still be under way
		return s.settleName(ctx, f, name)
	}
	if err != nil {
		return err
	}
	if err := s.settle(context.WithoutCancel(ctx), f); err != nil {
		return fmt.Errorf("%w: %w", object.ErrUnknownOutcome, err)
	}
	s.counts.deletes.Add(1)
	return nil
}
