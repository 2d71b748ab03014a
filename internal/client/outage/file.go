package outage

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open file.
type file struct {
	v     *FS
	h     vfs.Handle
	below vfs.File
}

var (
	_ vfs.File      = (*file)(nil)
	_ vfs.Unwrapper = (*file)(nil)
	_ vfs.Holder    = (*file)(nil)
)

// Open opens a file. To create one here is not a change that another caller takes over: a server creates by
// Create, and opens what it has.
func (f *FS) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	var below vfs.File
	var opened vfs.Opened
	open := func(ctx context.Context) (err error) {
		below, opened, err = f.below.Open(ctx, at, how)
		return err
	}
	var err error
	if at.Name == "" && !how.Trunc {
		// It need not ask the server: NFSv3 has no open. So it works while that is silent, too.
		err = open(ctx)
	} else {
		err = f.s.ask(ctx, open)
	}
	if err != nil {
		return nil, opened, err
	}
	f.s.noteAttr(opened.H, &opened.Attr)
	return &file{v: f, h: opened.H, below: below}, opened, nil
}

// Unwrap returns the file below.
func (o *file) Unwrap() any { return o.below }

// Holds implements vfs.Holder. What is appended would go past the bound.
func (o *file) Holds(power any) bool {
	_, appends := power.(*vfs.Appender)
	return !appends
}

func (o *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	err = o.v.s.ask(ctx, func(ctx context.Context) (err error) {
		n, eof, err = o.below.ReadAt(ctx, p, off, post)
		return err
	})
	if err == nil && post != nil {
		o.v.s.noteAttr(o.h, post)
	}
	return n, eof, err
}

func (o *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	*w = vfs.Written{} // also if nobody is asked
	err = o.v.s.ask(ctx, func(ctx context.Context) (err error) {
		n, err = o.below.WriteAt(ctx, p, off, how, w)
		return err
	})
	o.v.s.noteChange(o.h, &w.WCC, err)
	return n, err
}

func (o *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	*w = vfs.Written{}
	return o.v.s.ask(ctx, func(ctx context.Context) error { return o.below.Commit(ctx, off, n, w) })
}

func (o *file) Truncate(ctx context.Context, size uint64) (wcc vfs.WCC, err error) {
	err = o.v.s.ask(ctx, func(ctx context.Context) (err error) {
		wcc, err = o.below.Truncate(ctx, size)
		return err
	})
	o.v.s.noteChange(o.h, &wcc, err)
	return wcc, err
}

func (o *file) Close(ctx context.Context) error { return o.below.Close(ctx) }
