package dirfs

import (
	"bytes"
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// xattrMaxNames is the most bytes of names of extended attributes that Linux lists.
// xattrMore is room for names that are added between two calls; if it does not suffice, the
// object has some.
const (
	xattrMaxNames = 64 << 10
	xattrMore     = 256
)

// HasXattrs reports whether the file has extended attributes of users, or capabilities
// (xattr(7)). Others belong to the system, or are lists (vfs.ACLer). If they cannot be read,
// it returns true: a copy may lose some.
func (x *file) HasXattrs(ctx context.Context) bool {
	if x.ready(ctx, 0) != nil {
		return true
	}
	has := false
	err := control(x.f, func(fd int) error {
		has = hasXattrs(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
		return nil
	})
	return has || err != nil
}

// HasXattrs reports the same of any object. One that is gone has none.
func (f *FS) HasXattrs(ctx context.Context, h vfs.Handle) bool {
	if f.begin(ctx) != nil {
		return true
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return !errors.Is(err, vfs.ErrStale)
	}
	defer f.leave(o.s)
	defer x.close()
	return hasXattrs(func(b []byte) (int, error) { return unix.Listxattr(procPath(x.fd), b) })
}

// hasXattrs searches what list lists. It asks for the length first, as most objects have none.
func hasXattrs(list func([]byte) (int, error)) bool {
	n, err := list(nil)
	var names []byte
	if err == nil && n > 0 {
		names = make([]byte, min(n+xattrMore, xattrMaxNames))
		n, err = list(names)
	}
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return false
	case err != nil:
		return true
	case n == 0:
		return false
	}
	for name := range bytes.SplitSeq(names[:n], []byte{0}) {
		if bytes.HasPrefix(name, []byte("user.")) || string(name) == "security.capability" {
			return true
		}
	}
	return false
}
