package memfs

import (
	"context"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// WriteAt writes at most Options.WriteMax bytes; what fits them is written
// whole or, if there is no space, not at all. Bytes are exactly as stable as was
// asked for, and no better, so that a client's carelessness shows.
func (o *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	f := o.fs
	if err := f.begin(ctx, "write", o.h); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := o.use(vfs.ShareWrite); err != nil {
		return 0, err
	}
	if how > vfs.FileSync {
		return 0, vfs.ErrInval
	}
	p = p[:min(len(p), int(f.opt.WriteMax))]
	if off > MaxFileSize || uint64(len(p)) > MaxFileSize-off {
		return 0, vfs.ErrFBig
	}
	pre := o.n.pre()
	if len(p) > 0 {
		more := o.n.content.missing(off, off+uint64(len(p)))
		if more > f.freePages() {
			return 0, vfs.ErrNoSpace
		}
		o.n.content.write(p, off, how != vfs.Unstable)
		f.pages += more
		if !f.super() {
			o.n.unprivilege()
		}
		f.modified(o.n, f.now())
	}
	*w = vfs.Written{Committed: how, Verf: f.verf, WCC: f.wcc(o.n, pre)}
	return len(p), nil
}

// freePages is how many more pages there may be. The caller holds mu.
func (t *tree) freePages() uint64 {
	all := t.opt.MaxBytes / pageSize
	return all - min(all, t.pages)
}

// Truncate sets the file's size, stable at once.
func (o *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	f := o.fs
	if err := f.begin(ctx, "truncate", o.h); err != nil {
		return vfs.WCC{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := o.use(vfs.ShareWrite); err != nil {
		return vfs.WCC{}, err
	}
	if size > MaxFileSize {
		return vfs.WCC{}, vfs.ErrFBig
	}
	pre := o.n.pre()
	f.resize(o.n, size, f.now())
	return f.wcc(o.n, pre), nil
}

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
