package dirfs

import (
	"context"
	"errors"
	"io"
	"math"
	"os"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open regular file. os.File lets a call in flight end normally if the file is
// closed meanwhile.
type file struct {
	fs     *FS
	f      *os.File
	access vfs.Share
	dev    uint64
}

// Near implements vfs.Near.
func (x *file) Near() bool { return true }

// ready reports whether a call may begin.
func (x *file) ready(ctx context.Context, access vfs.Share) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if x.access&access != access {
		return vfs.ErrAccess
	}
	return nil
}

// ReadAt implements vfs.File.
func (x *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if err := x.ready(ctx, vfs.ShareRead); err != nil {
		return 0, false, err
	}
	if off > math.MaxInt64 {
		return 0, false, vfs.ErrInval
	}
	n, err = x.f.ReadAt(p[:min(len(p), MaxIO)], int64(off))
	if errors.Is(err, io.EOF) {
		eof, err = true, nil
	}
	if err != nil {
		return 0, false, closedOr("read", err)
	}
	if post != nil {
		var st stat
		if err := statFile(x.f, &st); err != nil {
			return 0, false, closedOr("stat", err)
		}
		*post = st.Attr
		eof = eof || len(p) > 0 && off+uint64(n) >= st.Size
	}
	return n, eof, nil
}

// WriteAt implements vfs.File.
func (x *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	if err := x.ready(ctx, vfs.ShareWrite); err != nil {
		return 0, err
	}
	switch {
	case how > vfs.FileSync:
		return 0, vfs.ErrInval
	case off > math.MaxInt64-MaxIO:
		return 0, vfs.ErrFBig
	}
	*w = vfs.Written{Committed: how, Verf: x.fs.verifier()}
	if len(p) > 0 {
		// The caller does not learn how much was written before the error: it will
		// write all of it again.
		if n, err = x.f.WriteAt(p[:min(len(p), MaxIO)], int64(off)); err != nil {
			return 0, closedOr("write", err)
		}
	}
	switch how {
	case vfs.DataSync:
		err = x.fs.synced(syncData(x.f))
	case vfs.FileSync:
		err = x.fs.synced(x.f.Sync())
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Commit implements vfs.File by fsync(2), or by a sync that many share (whole): data and
// attributes are stable.
func (x *file) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	if err := x.ready(ctx, 0); err != nil {
		return err
	}
	*w = vfs.Written{Committed: vfs.FileSync, Verf: x.fs.verifier()}
	return x.fs.synced(x.fs.whole.or(x.dev, x.f.Sync))
}

// synced changes the verifier if a sync has failed: writers that have not committed yet must
// write again.
func (f *FS) synced(err error) error {
	if err != nil && !errors.Is(err, os.ErrClosed) {
		f.verf.Add(1)
	}
	return closedOr("fsync", err)
}

// Truncate implements vfs.File.
func (x *file) Truncate(ctx context.Context, size uint64) (wcc vfs.WCC, err error) {
	if err := x.ready(ctx, vfs.ShareWrite); err != nil {
		return wcc, err
	}
	if size > math.MaxInt64 {
		return wcc, vfs.ErrFBig
	}
	var st stat
	if err := statFile(x.f, &st); err != nil {
		return wcc, closedOr("stat", err)
	}
	wcc.Before = preAttr(&st)
	if err := x.f.Truncate(int64(size)); err != nil {
		return wcc, closedOr("truncate", err)
	}
	if statFile(x.f, &st) == nil {
		wcc.After = st.Attr
	}
	return wcc, nil
}

// Close implements vfs.File.
func (x *file) Close(context.Context) error {
	err := x.f.Close()
	if errors.Is(err, os.ErrClosed) {
		return vfs.ErrInval
	}
	<-x.fs.files
	return fail("close", err)
}

// closedOr is err, or ErrInval if the file has been closed.
func closedOr(op string, err error) error {
	if errors.Is(err, os.ErrClosed) {
		return vfs.ErrInval
	}
	return fail(op, err)
}
