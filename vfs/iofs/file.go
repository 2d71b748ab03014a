package iofs

import (
	"errors"
	"io"
	"io/fs"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// regular is an open regular file.
type regular struct {
	fs   *FS
	file vfs.File
	info info
	name string // as opened, for errors
	off  int64
}

var (
	_ io.ReaderAt = (*regular)(nil)
	_ io.Seeker   = (*regular)(nil)
	_ io.WriterTo = (*regular)(nil)
)

func (f *regular) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

// Stat describes the file as it was when it was opened.
func (f *regular) Stat() (fs.FileInfo, error) {
	if f.file == nil {
		return nil, f.fail("stat", fs.ErrClosed)
	}
	return f.info, nil
}

func (f *regular) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.off)
	f.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ReadAt may be called concurrently.
func (f *regular) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case f.file == nil:
		return 0, f.fail("read", fs.ErrClosed)
	case off < 0:
		return 0, f.fail("read", fs.ErrInvalid)
	case len(p) == 0:
		return 0, nil
	}
	n, eof, err := vfs.ReadFull(f.fs.ctx, f.file, p, uint64(off))
	if err != nil {
		return n, f.fail("read", err)
	}
	if eof && n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *regular) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += f.off
	case io.SeekEnd:
		attr, err := f.size()
		if err != nil {
			return 0, f.fail("seek", err)
		}
		offset += attr
	default:
		return 0, f.fail("seek", fs.ErrInvalid)
	}
	if offset < 0 {
		return 0, f.fail("seek", fs.ErrInvalid)
	}
	f.off = offset
	return offset, nil
}

// size is that of the file, as it was when it was opened.
func (f *regular) size() (int64, error) {
	if f.file == nil {
		return 0, fs.ErrClosed
	}
	if f.info.attr.Size > math.MaxInt64 {
		return 0, vfs.ErrFBig
	}
	return int64(f.info.attr.Size), nil
}

// copyBuffer is how much WriteTo reads at once, in bytes.
const copyBuffer = 1 << 20

// WriteTo writes the file from where it stands to its end to w.
func (f *regular) WriteTo(w io.Writer) (int64, error) {
	buf := make([]byte, min(copyBuffer, f.info.attr.Size+1))
	var total int64
	for {
		n, err := f.Read(buf)
		m, werr := w.Write(buf[:n])
		total += int64(m)
		switch {
		case werr != nil:
			return total, werr
		case errors.Is(err, io.EOF):
			return total, nil
		case err != nil:
			return total, err
		}
	}
}

func (f *regular) Close() error {
	if f.file == nil {
		return f.fail("close", fs.ErrClosed)
	}
	err := f.file.Close(f.fs.ctx)
	f.file = nil
	if err != nil {
		return f.fail("close", err)
	}
	return nil
}

// other is what can be described and not read.
type other struct{ info info }

func (f *other) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *other) Close() error               { return nil }
func (f *other) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: vfs.ErrInval}
}
