//go:build linux

package localfs

import (
	"context"
	"errors"
	"math"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// WriteAt implements vfs.File. The write is made as the caller where that makes
// a difference: see identityMatters.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	switch {
	case f.w == nil:
		return 0, vfs.ErrAccess
	case how > vfs.FileSync:
		return 0, vfs.ErrInval
	case off > math.MaxInt64-MaxIO:
		return 0, vfs.ErrFBig
	}
	if err := f.ready(ctx); err != nil {
		return 0, err
	}
	defer f.leave()
	if !f.forgetful {
		if err := f.fs.boundDirty(ctx, f.w); err != nil {
			return 0, err
		}
	}
	// The verifier is read first: should a sync fail between here and the
	// reply, and take these bytes with it, the reply carries the old one, and
	// the writer learns of it at COMMIT.
	*w = vfs.Written{Committed: how, Verf: f.fs.verifier()}
	if n, err = f.write(ctx, p[:min(len(p), MaxIO)], int64(off), w); err != nil || n == 0 {
		return 0, err
	}
	if how == vfs.Unstable {
		return n, nil
	}
	if err := f.fs.syncDesc(ctx, f.w, how == vfs.FileSync); err != nil {
		return 0, err
	}
	return n, nil
}

// write checks and writes, and tells the attributes before and after.
func (f *file) write(ctx context.Context, p []byte, off int64, w *vfs.Written) (n int, err error) {
	v := f.fs
	if err := v.enter(ctx, classWrite); err != nil {
		return 0, err
	}
	defer v.end(classWrite)
	i := v.lockIn(f.w, classWrite)
	defer v.unlock(i)
	var st linux.Stat
	if err := st.Of(f.w.FD); err != nil {
		return 0, linux.Fail("statx", err)
	}
	if err := f.check(&st, false, true); err != nil {
		return 0, err
	}
	w.WCC.Before = v.before(&st)
	if len(p) > 0 {
		n, err = v.writeAs(f.w, &st, p, off)
		if !f.forgetful {
			v.fds.Dirty.Add(f.w)
		}
	}
	v.after(f.w, &w.WCC.After)
	return n, err
}

// boundDirty makes room for one more dirty descriptor, if d is to become one. If a sync of
// another file fails, d's writer is not told: the write verifier has changed.
func (v *FS) boundDirty(ctx context.Context, d *fdcache.Desc) error {
	l := &v.fds.Dirty
	for range maxTidy {
		if d.Dirty.Load() || l.Count() < v.fds.Max/dirtyShare {
			return nil
		}
		other := l.PinOldest()
		if other == nil {
			return nil
		}
		v.counts.cleaned.Add(1)
		err := v.syncDesc(ctx, other, false)
		v.release(other)
		if errors.Is(err, vfs.ErrBusy) || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (f *file) Truncate(ctx context.Context, size uint64) (wcc vfs.WCC, err error) {
	if f.w == nil {
		return wcc, vfs.ErrAccess
	}
	if err := f.begin(ctx, classWrite); err != nil {
		return wcc, err
	}
	defer f.end(classWrite)
	v := f.fs
	defer v.unlock(v.lockIn(f.w, classWrite))
	var st linux.Stat
	if err := st.Of(f.w.FD); err != nil {
		return wcc, linux.Fail("statx", err)
	}
	if err := f.check(&st, false, true); err != nil {
		return wcc, err
	}
	wcc.Before = v.before(&st)
	err = v.truncate(f.w, size)
	v.after(f.w, &wcc.After)
	return wcc, err
}
