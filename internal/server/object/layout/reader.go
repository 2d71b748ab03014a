package layout

import (
	"context"
	"errors"
	"io"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// Reader is what a Get of a driver returns: a part of an object. One goroutine at a time uses it.
type Reader struct {
	Info object.Info // of the object
	CRC  uint32      // of all of its content
	All  []byte      // the content, where it is in memory; nil: it is in the file
	// File reads the content: less than p where it likes, but nothing only where the file ends.
	File func(ctx context.Context, p []byte, off int64) (n int, err error)
	// Release lets go of the file.
	Release func() error

	ctx     context.Context
	at, end int64
	whole   bool
	crc     uint32
	closed  bool
}

// Range has n bytes from off on read, as object.Store has it of Get, until ctx ends. After an error all is released.
func (r *Reader) Range(ctx context.Context, off, n int64) error {
	n, err := object.Range(r.Info.Size, off, n)
	if err != nil {
		return errors.Join(err, r.Release())
	}
	r.ctx, r.at, r.end, r.whole = ctx, off, off+n, off == 0 && n == r.Info.Size
	return nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // our own read, whose end is io.EOF itself
		err = object.Fail("get", r.Info.Key, err)
	}
	return n, err
}

func (r *Reader) read(p []byte) (n int, err error) {
	if r.closed {
		return 0, object.ErrClosed
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.at == r.end {
		return 0, r.verdict()
	}
	p = p[:min(int64(len(p)), r.end-r.at)]
	if len(p) == 0 {
		return 0, nil
	}
	if r.All != nil {
		n = copy(p, r.All[r.at:r.end])
	} else if n, err = r.File(r.ctx, p, r.at); err == nil && n == 0 {
		err = Damaged("it has become shorter")
	}
	if r.whole {
		r.crc = CRC(r.crc, p[:n])
	}
	r.at += int64(n)
	return n, err
}

// verdict is the error at the end of the bytes: io.EOF, or that they are corrupted.
func (r *Reader) verdict() error {
	if r.whole && r.crc != r.CRC {
		return Damaged("its content does not fit its checksum")
	}
	return io.EOF
}

// Close implements io.Closer. Further ones do nothing.
func (r *Reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	return object.Fail("get", r.Info.Key, r.Release())
}
