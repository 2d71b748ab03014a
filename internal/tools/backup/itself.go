package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object/layout"
	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Paths do not say whether the store lies in the tree: one of the two may be named by a path, and the other by a server that
// exports it. Nor do attributes alone, as two file systems may have the same file ids: equal ones are a suspicion. The lease of this
// backup settles it, whose name no other store has.

// ErrItself says that the directory is the one that the store lies in. There is no snapshot: each would have all before it.
var ErrItself = errors.New("it is the store itself, and no snapshot was made")

// isStore reports whether a directory is the one that the store lies in. A dry run, which stores nothing, has no lease: it takes for
// the store what has its file id, and is one.
func (r *run) isStore(ctx context.Context, dir vfs.Handle, a *vfs.Attr) (bool, error) {
	if at := &r.o.StoreDir; !at.Has(vfs.MaskFileID) || !a.Has(vfs.MaskFileID) || at.FileID != a.FileID {
		return false, nil
	}
	if r.o.Mark == "" {
		h, err := r.below(ctx, dir, layout.MarkerName)
		return !h.IsZero(), err
	}
	for fanout := 1; fanout <= layout.MaxFanout; fanout++ {
		folder, mark := layout.Layout{Fanout: fanout}.Split(r.o.Mark)
		h, err := r.below(ctx, dir, strings.Split(folder, "/")...)
		if h.IsZero() {
			if err != nil {
				return false, err
			}
			continue
		}
		for e, err := range walk.List(ctx, r.o.FS, h, vfs.MaskType) {
			if err != nil {
				return false, err
			}
			if strings.HasPrefix(string(e.Name), mark) {
				return true, nil
			}
		}
	}
	return false, nil
}

// below looks names up, one in the other; zero: there is none.
func (r *run) below(ctx context.Context, h vfs.Handle, names ...string) (vfs.Handle, error) {
	for _, name := range names {
		var err error
		h, _, _, err = r.o.FS.Lookup(ctx, h, name)
		if errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrNotDir) {
			return vfs.Handle{}, nil
		}
		if err != nil {
			return vfs.Handle{}, fmt.Errorf("whether it is the store itself: %w", err)
		}
	}
	return h, nil
}

// leaveStore leaves the store out, unless it is all that there is: what Enter returns for it.
func (r *run) leaveStore(d *delta.Dir) error {
	if d.Parent == nil {
		return ErrItself
	}
	r.noteStore(d.Path(""))
	return walk.ErrSkipDir
}

func (r *run) noteStore(path string) { r.note("left_out", path, "the store itself is left out") }
