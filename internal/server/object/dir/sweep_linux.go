package dir

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep removes what crashes have left behind: temporary files that were last written
// before the given time, and are not those of Puts under way. It removes MaxSweep at
// most; more says that it has stopped there. The store can be used meanwhile.
//
// A store on a file system that can make files without a name (ext4, XFS, Btrfs, tmpfs)
// has leftovers only of Puts that were replacing an object.
func (s *Store) Sweep(ctx context.Context, before time.Time) (removed int, more bool, err error) {
	if err := s.enterChange(); err != nil {
		return 0, false, err
	}
	defer s.leave()
	err = s.eachFolder(ctx, ".", func(f *folder) error {
		if removed == MaxSweep {
			return errEnough
		}
		n, err := s.sweepFolder(ctx, f, before, MaxSweep-removed)
		removed += n
		return err
	})
	if errors.Is(err, errEnough) {
		return removed, true, nil
	}
	return removed, false, err
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// sweepFolder removes the leftovers in one directory, n at most. They are looked
// for with one place at the gate, and removed with one each.
func (s *Store) sweepFolder(ctx context.Context, f *folder, before time.Time, n int) (removed int, err error) {
	var found []string
	more := false
	err = s.gated(ctx, Meta, func() error {
		found, more, err = s.names(f, n, func(name string) bool {
			temp, own := s.isTemp(name)
			if !temp || own {
				return false
			}
			st, err := lstat(f, name)
			return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && modTime(&st).Before(before)
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, name := range found {
		err := s.gated(ctx, Meta, func() error { return s.sys.Unlinkat(f.fd, name, 0) })
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return removed, fail("unlink", err)
		}
		removed++
	}
	if more {
		return removed, errEnough
	}
	return removed, nil
}
