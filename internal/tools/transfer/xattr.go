package transfer

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Extended attributes are not copied. A directory of a Linux host knows what has some; NFSv3
// has no question for them. These are found by vfs.As.

// xattrFile is a File that knows whether it has extended attributes of a user, or
// capabilities (xattr(7)).
type xattrFile interface {
	HasXattrs(ctx context.Context) bool
}

// xattrFS is an FS that knows it of all its objects.
type xattrFS interface {
	HasXattrs(ctx context.Context, h vfs.Handle) bool
}

// fileHasXattrs reports whether f is known to have some.
func fileHasXattrs(ctx context.Context, f vfs.File) bool {
	x, ok := vfs.As[xattrFile](f)
	return ok && x.HasXattrs(ctx)
}

// HasXattrs reports whether the source is known to have extended attributes, which a copy
// does not get. What has only a name (a link, a pipe) is not asked.
func (s *Source) HasXattrs(ctx context.Context) bool {
	if s.Attr.Type != vfs.TypeReg && s.Attr.Type != vfs.TypeDir {
		return false
	}
	x, ok := vfs.As[xattrFS](s.FS)
	return ok && x.HasXattrs(ctx, s.Handle)
}
