//go:build linux

package localfs

import (
	"context"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// WriteAt implements vfs.File. The write itself is done as the caller, so that
// set-uid bits fall, quotas count and root's reserve of space stays untouched.
func (f *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	switch {
	case f.w == nil:
		return 0, vfs.ErrAccess
	case how > vfs.FileSync:
		return 0, vfs.ErrInval
	case off > math.MaxInt64-MaxIO:
		return 0, vfs.ErrFBig
	}
	if err := f.begin(ctx, classWrite); err != nil {
		return 0, err
	}
	defer f.end(classWrite)
	// The verifier is read first: should a sync fail between here and the
	// reply, and take these bytes with it, the reply carries the old one, and
	// the writer learns of it at COMMIT.
	*w = vfs.Written{Committed: how, Verf: f.fs.verifier()}
	if n, err = f.write(p[:min(len(p), MaxIO)], int64(off), w); err != nil || n == 0 {
		return 0, err
	}
	f.w.dirty.Store(true)
	if how == vfs.Unstable {
		return n, nil
	}
	if err := f.fs.syncDesc(ctx, f.w, how == vfs.FileSync); err != nil {
		return 0, err
	}
	return n, nil
}

// write checks and writes, and tells the attributes before and after.
func (f *file) write(p []byte, off int64, w *vfs.Written) (n int, err error) {
	v := f.fs
	defer v.unlock(v.lock(f.x))
	var st stat
	if err := st.statFD(f.w.fd); err != nil {
		return 0, fail("statx", err)
	}
	if err := f.check(&st, false, true); err != nil {
		return 0, err
	}
	w.WCC.Before = v.before(&st)
	if len(p) > 0 {
		err = v.asWriter(func() (err error) {
			n, err = v.sys.Pwrite(f.w.fd, p, off)
			return fail("pwrite", err)
		})
	}
	v.after(f.w, &w.WCC.After)
	return n, err
}

// Truncate implements vfs.File.
func (f *file) Truncate(ctx context.Context, size uint64) (wcc vfs.WCC, err error) {
	if f.w == nil {
		return wcc, vfs.ErrAccess
	}
	if err := f.begin(ctx, classWrite); err != nil {
		return wcc, err
	}
	defer f.end(classWrite)
	v := f.fs
	defer v.unlock(v.lock(f.x))
	var st stat
	if err := st.statFD(f.w.fd); err != nil {
		return wcc, fail("statx", err)
	}
	if err := f.check(&st, false, true); err != nil {
		return wcc, err
	}
	wcc.Before = v.before(&st)
	err = v.truncate(f.w, size)
	v.after(f.w, &wcc.After)
	return wcc, err
}

// truncate sets the size of d, as the caller: set-uid bits fall here, too.
func (v *FS) truncate(d *desc, size uint64) error {
	if size > math.MaxInt64 {
		return vfs.ErrFBig
	}
	return v.asWriter(func() error { return fail("ftruncate", v.sys.Ftruncate(d.fd, int64(size))) })
}
