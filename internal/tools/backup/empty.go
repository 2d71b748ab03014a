package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// ErrEmpty says that nothing of the tree was met, and an earlier snapshot has something. There is no snapshot.
var ErrEmpty = errors.New("no snapshot was made")

// refuseEmpty refuses a snapshot with nothing in it where an earlier one has something: by rules that keep the newest
// ones it would take the place of a good one. It looks behind the walk, as filters and what vanishes leave nothing, too.
func (r *run) refuseEmpty(ctx context.Context) error {
	met := r.files.Load() + r.symlinks.Load() + r.nodes.Load() + r.errors.Load()
	if r.o.FromEmpty || met > 0 || r.dirs.Load() > 1 { // one is the top
		return nil
	}
	for _, s := range [maxPasts]*snapshot.Snapshot{r.o.Partial, r.o.Base} {
		if s == nil || !hasSomething(ctx, s) {
			continue
		}
		ref, what := s.Ref(), "the directory is empty"
		if left, _ := r.o.Filter.Left(); left > 0 {
			what = "all that the directory has is left out"
		}
		return fmt.Errorf("%s, and the snapshot before, %s, is not empty: %w. Is something not mounted? "+
			"--delete-from-empty makes the empty snapshot all the same", what, ref.Text(), ErrEmpty)
	}
	return nil
}

// hasSomething reports whether a snapshot has something but its top, or may have: that could not be listed.
func hasSomething(ctx context.Context, s *snapshot.Snapshot) bool {
	f := s.FS()
	h, _, err := f.Root(ctx)
	if err != nil {
		return true
	}
	something := false
	for _, err = range f.ReadDir(ctx, h, vfs.Pos{}, vfs.MaskType, 0) {
		something = true
		break
	}
	return something || err != nil
}
