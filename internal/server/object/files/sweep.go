package files

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/vfs"
)

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// Sweep removes what crashes have left behind: temporary files that were last written before the
// given time by the store's clock (that of object.Info's ModTime), and are not this Store's. It
// removes MaxSweep at most; more says that it has stopped there. The store can be used
// meanwhile. A Put of another host whose temporary it takes fails, and stores nothing: so before
// should be hours ago.
func (s *Store) Sweep(ctx context.Context, before time.Time) (removed int, more bool, err error) {
	if err := s.enterChange(ctx); err != nil {
		return 0, false, err
	}
	defer s.leave()
	err = s.sweep(ctx, ".", before, &removed)
	if errors.Is(err, errEnough) {
		return removed, true, nil
	}
	return removed, false, err
}

// sweep sweeps a folder and those below it. It recurses once for each segment that a key may
// have, and once more for the bucket.
func (s *Store) sweep(ctx context.Context, p string, before time.Time, removed *int) error {
	temps := layout.Least[string]{N: MaxSweep, Compare: strings.Compare}
	err := s.in(ctx, p, false, func(d *folder) error {
		temps.All = temps.All[:0]
		err := s.names(ctx, d, func(name string) {
			if layout.IsTemp(name) && !strings.HasPrefix(name, s.own) {
				temps.Add(name)
			}
		})
		if err != nil {
			return err
		}
		temps.Cut()
		for _, name := range temps.All {
			if err := s.sweepOne(ctx, d, name, before, removed); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, object.ErrNotExist) || errors.Is(err, object.ErrForeign) {
		return nil
	}
	if _, isBucket := s.layout.Bucket(layout.Last(p)); err != nil || isBucket {
		return err
	}
	return s.sweepBelow(ctx, p, before, removed)
}

// sweepOne removes a leftover, if it is one.
func (s *Store) sweepOne(ctx context.Context, d *folder, name string, before time.Time, removed *int) error {
	_, a, err := s.lookup(ctx, d, name)
	if errors.Is(err, vfs.ErrNoEnt) || err == nil && (a.Type != vfs.TypeReg || !a.Mtime.Before(before)) {
		return nil
	}
	if err != nil {
		return err
	}
	if *removed == MaxSweep {
		return errEnough
	}
	if _, err := s.fs.Remove(ctx, d.h, name, false); err != nil && !errors.Is(err, vfs.ErrNoEnt) {
		return fail("remove", err)
	}
	*removed++
	return nil
}

// sweepBelow sweeps the folders in p, batch by batch in the order of names.
func (s *Store) sweepBelow(ctx context.Context, p string, before time.Time, removed *int) error {
	for after, more := "", true; more; {
		below := layout.Least[string]{N: walkBatch, Compare: strings.Compare}
		err := (*tree)(s).Names(ctx, p, func(name string) {
			if name > after && s.layout.IsFolder(name) {
				below.Add(name)
			}
		})
		if err != nil {
			return err
		}
		below.Cut()
		more = below.Left
		for _, name := range below.All {
			if after == name {
				continue // listed twice
			}
			if err := s.sweep(ctx, layout.Join(p, name), before, removed); err != nil {
				return err
			}
			after = name
		}
	}
	return nil
}
