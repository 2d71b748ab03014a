package dirfs

import (
	"bytes"
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// xattrMaxNames is how many bytes of names of extended attributes Linux lists at most.
// Between two looks xattrMore bytes of them may be added; then there are some.
const (
	xattrMaxNames = 64 << 10
	xattrMore     = 256
)

// HasXattrs reports whether the file has extended attributes of a user, or capabilities
// (xattr(7)). Others are the system's own, or lists (vfs.ACLer). Of what cannot be read it
// is true.
func (x *file) HasXattrs(ctx context.Context) bool {
	if x.ready(ctx, 0) != nil {
		return false
	}
	has := false
	err := control(x.f, func(fd int) error {
		has = hasXattrs(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
		return nil
	})
	return has && err == nil
}

// HasXattrs is that of any object.
func (f *FS) HasXattrs(ctx context.Context, h vfs.Handle) bool {
	if f.begin(ctx) != nil {
		return false
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return false // it is gone, and what needs it says so
	}
	defer f.leave(o.s)
	defer x.close()
	return hasXattrs(func(b []byte) (int, error) { return unix.Listxattr(procPath(x.fd), b) })
}

// hasXattrs looks for them in what list lists. It asks for the length first: most objects
// have none.
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
