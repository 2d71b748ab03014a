package upstream

import (
	"context"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file.
type file struct {
	s     *shared
	h     vfs.Handle
	below vfs.File
}

// Open implements vfs.FS.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	fs, err := f.below()
	if err != nil {
		return nil, vfs.Opened{}, err
	}
	keep := f.s.o.Keep && at.Name == "" && how.Access == vfs.ShareRead && how.Deny == 0 && !how.Trunc
	if keep {
		if k := f.s.kept.lend(at.H, f.caller); k != nil {
			return &lent{file: file{f.s, at.H, k.file}, of: k}, k.opened, nil
		}
	}
	version := f.s.kept.lastOf(at.H) // from before the open
	below, opened, err := fs.Open(ctx, at, how)
	f.s.met(opened.H, &opened.Attr)
	f.s.metWCC(at.Dir, &opened.Dir)
	if err != nil {
		return nil, opened, err
	}
	if keep {
		if k := f.s.kept.add(f.caller, below, &opened, version); k != nil {
			return &lent{file: file{f.s, opened.H, below}, of: k}, opened, nil
		}
	}
	return &file{f.s, opened.H, below}, opened, nil
}

// ReadAt implements vfs.File.
func (o *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	var own vfs.Attr
	if post == nil {
		post = &own
	}
	n, eof, err := o.below.ReadAt(ctx, p, off, post)
	o.s.met(o.h, post)
	o.s.gone(o.h, err)
	return n, eof, err
}

// WriteAt implements vfs.File.
func (o *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	n, err := o.below.WriteAt(ctx, p, off, how, w)
	o.s.metWCC(o.h, &w.WCC)
	return n, err
}

// Commit implements vfs.File. The verifier is the other server's, as that of WRITE is: it alone has bytes that are not
// stable.
func (o *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := o.below.Commit(ctx, off, n, w)
	o.s.metWCC(o.h, &w.WCC)
	return err
}

// Truncate implements vfs.File.
func (o *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	wcc, err := o.below.Truncate(ctx, size)
	o.s.metWCC(o.h, &wcc)
	return wcc, err
}

// Close implements vfs.File.
func (o *file) Close(ctx context.Context) error { return o.below.Close(ctx) }

// lent is a file that is kept open.
type lent struct {
	file
	of     *keptFile
	closed atomic.Bool
}

// ReadAt implements vfs.File.
func (l *lent) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	if l.closed.Load() {
		return 0, false, vfs.ErrInval
	}
	return l.file.ReadAt(ctx, p, off, post)
}

// Close gives it back.
func (l *lent) Close(ctx context.Context) error {
	if l.closed.Swap(true) {
		return vfs.ErrInval
	}
	return l.s.kept.giveBack(ctx, l.of)
}
