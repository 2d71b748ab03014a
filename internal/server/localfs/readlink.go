//go:build linux

package localfs

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Readlink implements vfs.FS. Anything but a symbolic link is ErrInval.
func (v *FS) Readlink(ctx context.Context, x vfs.Handle) (target string, a vfs.Attr, err error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return "", a, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return "", a, err
	}
	defer v.fds.Unpin(d)
	var st linux.Stat
	if err := v.stat(d, &st); err != nil {
		return "", a, err
	}
	v.attr(&st, &a)
	if d.Kind != unix.S_IFLNK {
		return "", a, vfs.ErrInval
	}
	var buf [vfs.MaxPath + 1]byte
	n, err := unix.Readlinkat(d.FD, "", buf[:])
	if err != nil {
		return "", a, linux.Fail("readlink", err)
	}
	if n > vfs.MaxPath {
		return "", a, vfs.ErrNameTooLong
	}
	return string(buf[:n]), a, nil
}
