package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
)

// Readable is the first half of Open in a file system that nobody changes: it finds what at
// names in f, by f's Lookup and GetAttr, and returns it with its attributes. What would change
// something is [ErrROFS] (a name that exists, and had to be new: [ErrExist]), a directory
// [ErrIsDir], all else that is no file [ErrInval]. Rights are the caller's business.
func Readable(ctx context.Context, f FS, at At, how *OpenHow) (o Opened, err error) {
	if o.H = at.H; at.Name != "" {
		o.H, _, _, err = f.Lookup(ctx, at.Dir, at.Name)
	}
	if c := how.Create; c != nil {
		switch {
		case errors.Is(err, ErrNoEnt):
			err = ErrROFS
		case err == nil && c.Mode != CreateUnchecked:
			err = ErrExist
		}
	}
	if err == nil {
		o.Attr, err = f.GetAttr(ctx, o.H, MaskV3)
	}
	switch {
	case err != nil:
	case o.Attr.Type == TypeDir:
		err = ErrIsDir
	case o.Attr.Type != TypeReg || how.Access == 0:
		err = ErrInval
	case how.Access&ShareWrite != 0 || how.Trunc:
		err = ErrROFS
	case how.Deny != 0:
		err = ErrNotSupp
	}
	return o, err
}

// ReaderFile returns a [File] that reads r, for the Open of a file system of one's own. a are
// the file's attributes, and a.Size its length in bytes: r is not read beyond it. Reads call
// r.ReadAt concurrently, and are as much as it gives. Every change is [ErrROFS]. If r is an
// [io.Closer], Close closes it.
func ReaderFile(r io.ReaderAt, a Attr) File { return &readerFile{r: r, attr: a} }

type readerFile struct {
	r      io.ReaderAt
	attr   Attr
	closed atomic.Bool
}

// use is the error of a call whose context has ended, or that comes after Close.
func (f *readerFile) use(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.closed.Load() {
		return ErrInval
	}
	return nil
}

func (f *readerFile) ReadAt(ctx context.Context, p []byte, off uint64, post *Attr) (n int, eof bool, err error) {
	if err := f.use(ctx); err != nil {
		return 0, false, err
	}
	if post != nil {
		*post = f.attr
	}
	size := min(f.attr.Size, math.MaxInt64)
	if off >= size {
		return 0, true, nil
	}
	if len(p) == 0 {
		return 0, false, nil
	}
	p = p[:min(uint64(len(p)), size-off)]
	n, err = f.r.ReadAt(p, int64(off))
	switch {
	case n < 0 || n > len(p):
		return 0, false, fmt.Errorf("a reader answered %d to a read of %d bytes: %w", n, len(p), ErrServerFault)
	case n == len(p):
		return n, off+uint64(n) == size, nil // whatever it says: all is there
	case errors.Is(err, io.EOF):
		return n, true, nil // it has become shorter
	case err == nil && n == 0:
		err = io.ErrNoProgress
	}
	return n, false, err
}

func (f *readerFile) WriteAt(ctx context.Context, _ []byte, _ uint64, _ Stability, _ *Written) (int, error) {
	return 0, f.refuse(ctx)
}

func (f *readerFile) Commit(ctx context.Context, _, _ uint64, _ *Written) error { return f.refuse(ctx) }

func (f *readerFile) Truncate(ctx context.Context, _ uint64) (WCC, error) {
	return WCC{}, f.refuse(ctx)
}

// refuse is the answer to every change.
func (f *readerFile) refuse(ctx context.Context) error {
	if err := f.use(ctx); err != nil {
		return err
	}
	return ErrROFS
}

func (f *readerFile) Close(context.Context) error {
	if f.closed.Swap(true) {
		return ErrInval
	}
	if c, ok := f.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
