//go:build linux || darwin

package dirfs

import (
	"context"
	"errors"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.HoleSeeker = (*file)(nil)

func (f *FS) newFile(x *os.File, access vfs.Share, dev uint64) vfs.File {
	return &file{f, x, access, dev}
}

// control calls do with the descriptor of f, and keeps it open meanwhile.
func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var did error
	err = c.Control(func(fd uintptr) { did = again(func() error { return do(int(fd)) }) })
	if err != nil {
		return err
	}
	return did
}

// statFile fills st with the attributes of an open file.
func statFile(f *os.File, st *stat) error {
	return control(f, func(fd int) error { return statFD(fd, st) })
}

// NextData implements vfs.HoleSeeker.
func (x *file) NextData(ctx context.Context, off uint64) (uint64, error) {
	n, err := x.seek(ctx, off, unix.SEEK_DATA)
	if errors.Is(err, vfs.ErrNXIO) {
		return 0, io.EOF
	}
	return n, err
}

// NextHole implements vfs.HoleSeeker. Everything after the end is a hole.
func (x *file) NextHole(ctx context.Context, off uint64) (uint64, error) {
	n, err := x.seek(ctx, off, unix.SEEK_HOLE)
	if errors.Is(err, vfs.ErrNXIO) {
		return off, nil
	}
	return n, err
}

// seek uses the descriptor's offset, which reads and writes do not.
func (x *file) seek(ctx context.Context, off uint64, whence int) (n uint64, err error) {
	if err := x.ready(ctx, 0); err != nil {
		return 0, err
	}
	if off > math.MaxInt64 {
		return 0, vfs.ErrNXIO
	}
	err = control(x.f, func(fd int) error {
		at, err := unix.Seek(fd, int64(off), whence)
		n = uint64(at)
		return err
	})
	if errors.Is(err, unix.EINVAL) {
		return 0, vfs.ErrNotSupp // a file system without support for holes
	}
	if err != nil {
		return 0, closedOr("lseek", err)
	}
	return n, nil
}
