package localio

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Commit syncs what was written by descriptors, and commits below if unstable
// bytes went there. Which of them were in the range is not looked at: the kernel
// syncs a file as a whole. The verifier is read last: what was lost until then
// has changed it.
func (f *file) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	if err := f.use(ctx, 0); err != nil {
		return err
	}
	*w = vfs.Written{}
	did, err := f.n.sync(ctx, true) // what others wrote, if f cannot
	if err != nil {
		return err
	}
	if f.n.below.Load() || f.access&vfs.ShareWrite == 0 {
		return f.commitBelow(ctx, w) // which may not want it at all
	}
	g := f.grant(ctx, vfs.ShareWrite, f.small(vfs.ShareWrite, 0, 0))
	if g != nil {
		defer g.leave()
	}
	if !did {
		// Nothing that was written here. The caller may mean what others wrote.
		if g == nil {
			return f.commitBelow(ctx, w)
		}
		f.n.touch(g)
		if _, err := f.n.sync(ctx, true); err != nil {
			return err
		}
	}
	f.fs.s.count.commits.Add(1)
	*w = vfs.Written{Committed: vfs.FileSync, Verf: f.n.verifier()}
	if g != nil {
		g.after(&w.WCC.After)
	}
	return nil
}

// commitBelow commits over the network: in mode Require as well if something is
// in doubt there, since nothing else ends that, and it carries no data.
func (f *file) commitBelow(ctx context.Context, w *vfs.Written) error {
	if err := f.remote(ctx, vfs.ShareWrite, nil); err != nil && !f.n.below.Load() {
		return err
	}
	seq := f.n.draining()
	// All of it, so that nothing is left of what went there.
	if err := f.below.Commit(ctx, 0, 0, w); err != nil {
		return err
	}
	f.n.drained(seq, w.Verf)
	f.fs.s.hear()
	w.Verf = f.n.verifier()
	return nil
}
