package memfs

import (
	"context"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// Commit makes the pages of [off, off+n) stable, and no others.
func (o *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	f := o.fs
	if err := f.begin(ctx, "commit", o.h); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := o.use(0); err != nil {
		return err
	}
	end := off + n
	if n == 0 || end < off {
		end = math.MaxUint64
	}
	o.n.content.settle(off, end)
	*w = vfs.Written{Committed: vfs.FileSync, Verf: f.verf, WCC: f.wcc(o.n, o.n.pre())}
	return nil
}
