package localio

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Commit syncs what was written by descriptors, and commits below if unstable bytes went there. The
// range is ignored: the kernel syncs a file as a whole. The verifier is read last, because everything
// lost until then has changed it.
func (f *file) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	if err := f.use(ctx, 0); err != nil {
		return err
	}
	*w = vfs.Written{}
	did, err := f.n.sync(ctx, true) // with what other files wrote, if f itself cannot
	if err != nil {
		return err
	}
	if f.n.below.Load() || f.access&vfs.ShareWrite == 0 {
		return f.commitBelow(ctx, w) // the FS below may find nothing to commit
	}
	g := f.grant(ctx, vfs.ShareWrite, f.small(vfs.ShareWrite, 0, 0))
	if g != nil {
		defer g.leave()
	}
	if !did {
		// Nothing was written here. The caller may mean what other clients wrote.
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

// commitBelow commits over the network. In mode Require it does so too if the outcome of a write there
// is in doubt: nothing else ends the doubt, and COMMIT carries no data.
func (f *file) commitBelow(ctx context.Context, w *vfs.Written) error {
	if err := f.remote(ctx, vfs.ShareWrite, nil); err != nil && !f.n.below.Load() {
		return err
	}
	seq := f.n.draining()
	// The whole file, so that nothing unstable is left there.
	if err := f.below.Commit(ctx, 0, 0, w); err != nil {
		return err
	}
	f.n.drained(seq, w.Verf)
	f.fs.s.hear()
	w.Verf = f.n.verifier()
	return nil
}
