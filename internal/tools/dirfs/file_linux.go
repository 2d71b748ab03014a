package dirfs

import (
	"context"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Dropper = (*file)(nil)

// Drop implements vfs.Dropper.
func (x *file) Drop(ctx context.Context, off, n uint64) error {
	if err := x.ready(ctx, 0); err != nil {
		return err
	}
	off, n = min(off, math.MaxInt64), min(n, math.MaxInt64)
	err := control(x.f, func(fd int) error { return unix.Fadvise(fd, int64(off), int64(n), unix.FADV_DONTNEED) })
	return closedOr("fadvise", err)
}
