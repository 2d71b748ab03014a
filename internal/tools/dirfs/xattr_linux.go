package dirfs

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.Xattrer = (*FS)(nil)

// xattrMore is room for names that are added between two calls; if it does not suffice, the
// object has some.
const xattrMore = 256

// Extras reports whether the file has extended attributes that checkXattr lets pass, and whether it may have an access
// control list. If they cannot be read, both are true: a copy may lose some.
func (x *file) Extras(ctx context.Context) (xattrs, list bool) {
	if x.ready(ctx, 0) != nil {
		return true, true
	}
	err := control(x.f, func(fd int) error {
		names, all := listed(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
		xattrs = someXattr(names, all)
		list = !all || bytes.Contains(names, []byte(xattrAccess)) || !x.fs.listing.named(x.dev, fd)
		return nil
	})
	return xattrs || err != nil, list || err != nil
}

// named reports whether the file system of fd, whose device is dev, is known to do so.
func (l *listing) named(dev uint64, fd int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	named, known := l.devs[dev]
	if known {
		return named
	}
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		named = true
	}
	if l.devs == nil {
		l.devs = make(map[uint64]bool)
	}
	if len(l.devs) < maxListing {
		l.devs[dev] = named
	}
	return named
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
	return someXattr(listed(func(b []byte) (int, error) { return unix.Listxattr(procPath(x.fd), b) }))
}

// listed are the names that list lists, each with a zero behind it. all says that they could be read, or that there can be
// none. It asks for the length first, as most objects have none.
func listed(list func([]byte) (int, error)) (names []byte, all bool) {
	n, err := list(nil)
	if err == nil && n > 0 {
		names = make([]byte, min(n+xattrMore, vfs.MaxXattrNames))
		n, err = list(names)
	}
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return nil, true
	case err != nil:
		return nil, false
	}
	return names[:n], true
}

// someXattr reports whether one of the names that were listed passes checkXattr, or not all of them could be read.
func someXattr(names []byte, all bool) bool {
	for name := range bytes.SplitSeq(names, []byte{0}) {
		if len(name) > 0 && checkXattr(string(name)) == nil {
			return true
		}
	}
	return !all
}

// checkXattr is vfs.CheckXattr, and nil for what the kernel and privileged programs keep with a
// file: "trusted." and "security." (xattr(7)). The labels of this host's policy are none of a
// copy's: every file has one, made by the rules of its host. "system." has the lists
// (vfs.ACLer), and what a file system makes itself.
func checkXattr(name string) error {
	space, rest, _ := strings.Cut(name, ".")
	switch {
	case space != "trusted" && space != "security", len(name) > vfs.MaxXattrName:
		return vfs.CheckXattr(name)
	case space == "security" && policy(rest):
		return vfs.ErrNotSupp
	case rest == "" || strings.IndexByte(name, 0) >= 0:
		return vfs.ErrInval
	}
	return nil
}

// policy reports whether "security."+name is a label that the kernel's security modules of this
// host made for the file, or measured of it.
func policy(name string) bool {
	return name == "selinux" || name == "apparmor" || name == "ima" || name == "evm" || strings.HasPrefix(name, "SMACK64")
}

// Xattrs implements vfs.Xattrer.
func (f *FS) Xattrs(ctx context.Context, h vfs.Handle) (names []string, err error) {
	err = f.attributed(ctx, h, "", func(path string) error {
		buf := make([]byte, vfs.MaxXattrNames)
		n, err := unix.Listxattr(path, buf)
		if err != nil {
			return failXattr("listxattr", err)
		}
		for name := range bytes.SplitSeq(buf[:n], []byte{0}) {
			if checkXattr(string(name)) == nil {
				names = append(names, string(name))
			}
		}
		return nil
	})
	return names, err
}

// Xattr implements vfs.Xattrer.
func (f *FS) Xattr(ctx context.Context, h vfs.Handle, name string) (value []byte, err error) {
	err = f.attributed(ctx, h, name, func(path string) error {
		if err := checkXattr(name); err != nil {
			return err
		}
		buf := make([]byte, vfs.MaxXattr)
		n, err := unix.Getxattr(path, name, buf)
		if err != nil {
			return failXattr("getxattr", err)
		}
		value = bytes.Clone(buf[:n])
		return nil
	})
	return value, err
}

// SetXattr implements vfs.Xattrer.
func (f *FS) SetXattr(ctx context.Context, h vfs.Handle, name string, value []byte, how vfs.XattrHow) error {
	flags, ok := map[vfs.XattrHow]int{vfs.XattrEither: 0, vfs.XattrCreate: unix.XATTR_CREATE, vfs.XattrReplace: unix.XATTR_REPLACE}[how]
	return f.attributed(ctx, h, name, func(path string) error {
		switch err := checkXattr(name); {
		case err != nil:
			return err
		case !ok:
			return vfs.ErrInval
		}
		return failXattr("setxattr", again(func() error { return unix.Setxattr(path, name, value, flags) }))
	})
}

// RemoveXattr implements vfs.Xattrer.
func (f *FS) RemoveXattr(ctx context.Context, h vfs.Handle, name string) error {
	return f.attributed(ctx, h, name, func(path string) error {
		if err := checkXattr(name); err != nil {
			return err
		}
		return failXattr("removexattr", again(func() error { return unix.Removexattr(path, name) }))
	})
}

// attributed calls do with a path of the object, if that may have an extended attribute of that name; "" is any. It goes
// through /proc because fgetxattr(2) and its like refuse O_PATH descriptors. The path of a symbolic link that is open
// leads to the link, and not to its target.
func (f *FS) attributed(ctx context.Context, h vfs.Handle, name string, do func(path string) error) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return err
	}
	defer f.leave(o.s)
	defer x.close()
	if o.st.Type != vfs.TypeReg && o.st.Type != vfs.TypeDir && strings.HasPrefix(name, vfs.XattrUser) {
		return vfs.ErrNotSupp // the kernel has it so (xattr(7))
	}
	return do(procPath(x.fd))
}

// failXattr is fail for calls about extended attributes, to which two errors mean something else.
func failXattr(op string, err error) error {
	switch {
	case errors.Is(err, unix.ENODATA):
		return vfs.ErrNoXattr
	case errors.Is(err, unix.E2BIG), errors.Is(err, unix.ERANGE):
		return vfs.ErrXattr2Big
	}
	return fail(op, err)
}
