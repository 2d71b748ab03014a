//go:build linux

package fusefs

import (
	"context"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// errno is what a program sees of an error of the call ctx.
func errno(ctx context.Context, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fuse.EINTR
	}
	if errors.Is(err, syscall.ENOLCK) { // the server has no lock manager, or no room for another lock
		return fuse.Status(syscall.ENOLCK)
	}
	s, ok := vfs.StatusOf(err)
	if !ok {
		if e, is := errors.AsType[syscall.Errno](err); is && e == syscall.ETIMEDOUT { // softerr
			return fuse.Status(e)
		}
		return fuse.EIO
	}
	switch s {
	case vfs.ErrBadHandle:
		return fuse.Status(syscall.ESTALE)
	case vfs.ErrBusy: // EAGAIN would mean that poll(2) helps
		return fuse.EBUSY
	case vfs.ErrNoXattr:
		return fuse.ENODATA
	case vfs.ErrXattr2Big:
		return fuse.Status(syscall.E2BIG)
	case vfs.ErrNotSync, vfs.ErrBadCookie, vfs.ErrTooSmall, vfs.ErrBadType:
		return fuse.EINVAL
	}
	if e := s.Errno(); e != 0 {
		return fuse.Status(e)
	}
	return fuse.EIO
}
