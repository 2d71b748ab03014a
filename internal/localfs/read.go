//go:build linux

package localfs

import (
	"context"
	"errors"
	"io"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// ReadAt implements vfs.File: a pread and one statx, which says whether the
// caller may have what was read, where the file ends, and what post wants.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if f.r == nil {
		return 0, false, vfs.ErrAccess
	}
	if err := f.begin(ctx, classRead); err != nil {
		return 0, false, err
	}
	defer f.end(classRead)
	p = p[:min(len(p), MaxIO)]
	if off <= math.MaxInt64-MaxIO && len(p) > 0 {
		err = again(func() (err error) {
			n, err = unix.Pread(f.r.fd, p, int64(off))
			return err
		})
		if err != nil {
			return 0, false, fail("pread", err)
		}
	}
	var st stat
	if err := st.statFD(f.r.fd); err != nil {
		return 0, false, fail("statx", err)
	}
	if err := f.check(&st, true, false); err != nil {
		return 0, false, err
	}
	if post != nil {
		f.fs.attr(&st, post)
	}
	// Nothing was read where the end was, though the file may have grown since.
	eof = off+uint64(n) >= st.Size || n == 0 && len(p) > 0
	return n, eof, nil
}

// NextData implements vfs.HoleSeeker.
func (f *file) NextData(ctx context.Context, off uint64) (uint64, error) {
	n, err := f.seek(ctx, off, unix.SEEK_DATA)
	if errors.Is(err, vfs.ErrNXIO) {
		return 0, io.EOF
	}
	return n, err
}

// NextHole implements vfs.HoleSeeker. Behind the end all is hole.
func (f *file) NextHole(ctx context.Context, off uint64) (uint64, error) {
	n, err := f.seek(ctx, off, unix.SEEK_HOLE)
	if errors.Is(err, vfs.ErrNXIO) {
		return off, nil
	}
	return n, err
}

// seek moves the offset of a descriptor that is read by pread only.
func (f *file) seek(ctx context.Context, off uint64, whence int) (uint64, error) {
	if off > math.MaxInt64 {
		return 0, vfs.ErrNXIO
	}
	if err := f.begin(ctx, classRead); err != nil {
		return 0, err
	}
	defer f.end(classRead)
	d := f.r
	if d == nil {
		d = f.w
	}
	n, err := unix.Seek(d.fd, int64(off), whence)
	if err != nil {
		return 0, fail("lseek", err)
	}
	return uint64(n), nil
}
