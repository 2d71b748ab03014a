//go:build linux

package localfs

import (
	"bytes"
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Xattrer = (*FS)(nil)

// xattrSys is a [Sys] that can change extended attributes of users. With one that cannot, they
// are ErrNotSupp.
type xattrSys interface {
	// SetUserXattr sets an attribute of the object behind fd, which may be an O_PATH
	// descriptor; flags are those of setxattr(2).
	SetUserXattr(fd int, name string, value []byte, flags int) error
	RemoveUserXattr(fd int, name string) error
}

// Xattrs implements vfs.Xattrer: those of users alone. A server's clients make no file that
// gives its capabilities to whoever runs it. As for attributes, the handle is right enough.
func (v *FS) Xattrs(ctx context.Context, x vfs.Handle) (names []string, err error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return nil, err
	}
	defer v.end(classMeta)
	var st linux.Stat
	d, err := v.attributed(x, &st)
	if err != nil {
		return nil, err
	}
	defer v.fds.Unpin(d)
	buf := make([]byte, vfs.MaxXattrNames)
	n, err := unix.Listxattr(linux.ProcPath(d.FD), buf)
	if err != nil {
		return nil, failXattr("listxattr", err)
	}
	for name := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if vfs.CheckXattr(string(name)) == nil {
			names = append(names, string(name))
		}
	}
	return names, nil
}

// Xattr implements vfs.Xattrer, as the caller.
func (v *FS) Xattr(ctx context.Context, x vfs.Handle, name string) ([]byte, error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return nil, err
	}
	defer v.end(classMeta)
	var st linux.Stat
	d, err := v.attributed(x, &st)
	if err != nil {
		return nil, err
	}
	defer v.fds.Unpin(d)
	if err := vfs.CheckXattr(name); err != nil {
		return nil, err
	}
	if err := v.permits(d, &st, mayRead); err != nil {
		return nil, err
	}
	buf, n := make([]byte, vfs.MaxXattr), 0
	err = v.as(func() (err error) {
		n, err = unix.Getxattr(linux.ProcPath(d.FD), name, buf)
		return failXattr("getxattr", err)
	})
	if err != nil {
		return nil, err
	}
	return bytes.Clone(buf[:n]), nil
}

// SetXattr implements vfs.Xattrer, as the caller. Like every change of attributes it is stable
// after Sync.
func (v *FS) SetXattr(ctx context.Context, x vfs.Handle, name string, value []byte, how vfs.XattrHow) error {
	flags, ok := map[vfs.XattrHow]int{vfs.XattrEither: 0, vfs.XattrCreate: unix.XATTR_CREATE, vfs.XattrReplace: unix.XATTR_REPLACE}[how]
	if !ok {
		return vfs.ErrInval
	}
	return v.changeXattr(ctx, x, name, func(sys xattrSys, fd int) error {
		return failXattr("setxattr", sys.SetUserXattr(fd, name, value, flags))
	})
}

// RemoveXattr implements vfs.Xattrer, as SetXattr.
func (v *FS) RemoveXattr(ctx context.Context, x vfs.Handle, name string) error {
	return v.changeXattr(ctx, x, name, func(sys xattrSys, fd int) error {
		return failXattr("removexattr", sys.RemoveUserXattr(fd, name))
	})
}

// changeXattr has do change an attribute called name, as the caller, if it may.
func (v *FS) changeXattr(ctx context.Context, x vfs.Handle, name string, do func(sys xattrSys, fd int) error) error {
	if err := v.beginChange(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	var st linux.Stat
	d, err := v.attributed(x, &st)
	if err != nil {
		return err
	}
	defer v.fds.Unpin(d)
	if err := vfs.CheckXattr(name); err != nil {
		return err
	}
	sys, ok := v.disk.(xattrSys)
	if !ok {
		return vfs.ErrNotSupp
	}
	defer v.unlock(v.lock(d))
	if d.Kind == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0 && !v.owns(&st) {
		return vfs.ErrPerm
	}
	if err := v.permits(d, &st, mayWrite); err != nil {
		return err
	}
	if err := v.as(func() error { return do(sys, d.FD) }); err != nil {
		return err
	}
	return v.touched(d)
}

// attributed returns the pinned descriptor of x, whose attributes it leaves in st, if that may
// have extended attributes.
func (v *FS) attributed(x vfs.Handle, st *linux.Stat) (*fdcache.Desc, error) {
	d, err := v.object(x)
	if err != nil {
		return nil, err
	}
	if err = v.stat(d, st); err == nil && d.Kind != unix.S_IFREG && d.Kind != unix.S_IFDIR {
		err = vfs.ErrNotSupp
	}
	if err != nil {
		v.fds.Unpin(d)
		return nil, err
	}
	return d, nil
}

// failXattr is linux.Fail for calls about extended attributes, to which two errors mean something
// else.
func failXattr(op string, err error) error {
	switch {
	case errors.Is(err, unix.ENODATA):
		return vfs.ErrNoXattr
	case errors.Is(err, unix.E2BIG), errors.Is(err, unix.ERANGE):
		return vfs.ErrXattr2Big
	}
	return linux.Fail(op, err)
}
