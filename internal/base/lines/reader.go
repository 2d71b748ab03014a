package lines

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/vfs"
)

// Reader reads a file from its beginning, and passes over its holes. It is for one goroutine.
type Reader struct {
	ctx  context.Context
	fs   vfs.FS
	h    vfs.Handle
	f    vfs.File
	off  uint64
	size uint64
	eof  bool
}

// NewReader returns a Reader of f, whose handle in fs is h. An end before size is an error, unless the file has become
// shorter. The context holds for all that is read.
func NewReader(ctx context.Context, fs vfs.FS, h vfs.Handle, f vfs.File, size uint64) *Reader {
	return &Reader{ctx: ctx, fs: fs, h: h, f: f, size: size}
}

// Read implements io.Reader. A file that ends before its size is an error, unless it has become shorter.
func (r *Reader) Read(p []byte) (int, error) {
	if r.eof {
		return 0, io.EOF
	}
	n, eof, err := r.f.ReadAt(r.ctx, p, r.off, nil)
	if n < 0 || n > len(p) {
		return 0, fmt.Errorf("read of %d bytes answered %d: %w", len(p), n, vfs.ErrServerFault)
	}
	r.off += uint64(n)
	if err != nil || !eof {
		return n, err
	}
	r.eof = true
	if r.off < r.size {
		a, err := r.fs.GetAttr(r.ctx, r.h, vfs.MaskSize)
		if err != nil {
			return n, err
		}
		if a.Size > r.off {
			return n, fmt.Errorf("it ends at %d, and its size is %d: %w", r.off, a.Size, io.ErrUnexpectedEOF)
		}
	}
	return n, io.EOF
}

// Hole implements HoleReader, for files that tell of their holes. An error is left to the next read.
func (r *Reader) Hole() uint64 {
	holes, ok := vfs.As[vfs.HoleSeeker](r.f)
	if !ok || r.eof {
		return 0
	}
	data, err := holes.NextData(r.ctx, r.off)
	if errors.Is(err, io.EOF) {
		var a vfs.Attr
		a, err = r.fs.GetAttr(r.ctx, r.h, vfs.MaskSize)
		data = a.Size
	}
	if err != nil || data <= r.off {
		return 0
	}
	n := data - r.off
	r.off = data
	return n
}
