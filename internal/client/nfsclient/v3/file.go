package v3

import (
	"context"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// file is an open regular file. NFSv3 has no open state: a file is a handle, a caller, and an entry
// in the table of open files.
type file struct {
	fs     *FS
	h      vfs.Handle
	name   *openName
	access vfs.Share
	closed atomic.Bool
}

var _ vfs.File = (*file)(nil)

// use returns an error if the file was not opened for that access.
func (o *file) use(access vfs.Share) error {
	switch {
	case o.closed.Load():
		return vfs.ErrInval
	case o.access&access != access:
		return vfs.ErrAccess
	}
	return nil
}

// Truncate is one SETATTR of the size.
func (o *file) Truncate(ctx context.Context, size uint64) (vfs.WCC, error) {
	if err := o.use(vfs.ShareWrite); err != nil {
		return vfs.WCC{}, err
	}
	return o.fs.SetAttr(ctx, o.h, &vfs.SetAttr{Valid: vfs.MaskSize, Size: size}, nil)
}

// Close makes no call, unless the file was removed while open and this is its last Close: then it
// removes the file.
func (o *file) Close(ctx context.Context) error {
	if !o.closed.CompareAndSwap(false, true) {
		return vfs.ErrInval
	}
	defer o.fs.open.drop(o.name)
	return o.fs.open.release(ctx, o.h)
}
