//go:build linux

package linux

import (
	"errors"

	"golang.org/x/sys/unix"
)

// OS are the system calls of the running kernel that change a disk.
type OS struct{}

// Openat is openat(2), with O_CLOEXEC and O_NOFOLLOW.
func (OS) Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error) {
	err = Again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return fd, err
}

// Mkdirat is mkdirat(2).
func (OS) Mkdirat(dirfd int, name string, mode uint32) error {
	return Again(func() error { return unix.Mkdirat(dirfd, name, mode) })
}

// Symlinkat is symlinkat(2).
func (OS) Symlinkat(target string, dirfd int, name string) error {
	return Again(func() error { return unix.Symlinkat(target, dirfd, name) })
}

// Mknodat is mknodat(2).
func (OS) Mknodat(dirfd int, name string, mode uint32, dev uint64) error {
	return Again(func() error { return unix.Mknodat(dirfd, name, mode, int(dev)) })
}

// Linkat links what fromfd refers to. It goes through /proc: AT_EMPTY_PATH asks for a
// privilege that link(2) itself does not need.
func (OS) Linkat(fromfd, dirfd int, name string) error {
	return Again(func() error {
		return unix.Linkat(unix.AT_FDCWD, ProcPath(fromfd), dirfd, name, unix.AT_SYMLINK_FOLLOW)
	})
}

// OpenNameless is openat(2) of the directory with O_TMPFILE. It is EOPNOTSUPP on file
// systems that cannot do that.
func (OS) OpenNameless(dirfd int, mode uint32) (fd int, err error) {
	err = Again(func() (err error) {
		fd, err = unix.Openat(dirfd, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// LinkNameless gives the nameless file fd a name. It goes through /proc if the thread lacks
// the privilege for AT_EMPTY_PATH, which is ENOENT.
func (s OS) LinkNameless(fd, dirfd int, name string) error {
	err := Again(func() error { return unix.Linkat(fd, "", dirfd, name, unix.AT_EMPTY_PATH) })
	if errors.Is(err, unix.ENOENT) {
		return s.Linkat(fd, dirfd, name)
	}
	return err
}

// Unlinkat is unlinkat(2).
func (OS) Unlinkat(dirfd int, name string, flags int) error {
	return Again(func() error { return unix.Unlinkat(dirfd, name, flags) })
}

// Renameat is renameat(2).
func (OS) Renameat(fromfd int, from string, tofd int, to string) error {
	return Again(func() error { return unix.Renameat(fromfd, from, tofd, to) })
}

// RenameatNoReplace is renameat2(2) with RENAME_NOREPLACE. It is EINVAL on file systems
// that cannot do that.
func (OS) RenameatNoReplace(fromfd int, from string, tofd int, to string) error {
	return Again(func() error { return unix.Renameat2(fromfd, from, tofd, to, unix.RENAME_NOREPLACE) })
}

// Pwrite is pwrite(2); n is never negative.
func (OS) Pwrite(fd int, p []byte, off int64) (n int, err error) {
	err = Again(func() (err error) {
		n, err = unix.Pwrite(fd, p, off)
		return err
	})
	return max(n, 0), err
}

// Ftruncate is ftruncate(2).
func (OS) Ftruncate(fd int, size int64) error {
	return Again(func() error { return unix.Ftruncate(fd, size) })
}

// Fallocate is fallocate(2).
func (OS) Fallocate(fd int, mode uint32, off, n int64) error {
	return Again(func() error { return unix.Fallocate(fd, mode, off, n) })
}

// Fchmod is chmod(2) through /proc, because fchmod(2) refuses O_PATH descriptors.
func (OS) Fchmod(fd int, mode uint32) error {
	return Again(func() error { return unix.Chmod(ProcPath(fd), mode) })
}

// Fchown is fchownat(2) of fd itself.
func (OS) Fchown(fd int, uid, gid int) error {
	return Again(func() error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) })
}

// Futimens is utimensat(2) of fd itself. A time that the kernel's type cannot hold, on
// 32-bit machines, is EINVAL.
func (OS) Futimens(fd int, atimeSec, atimeNsec, mtimeSec, mtimeNsec int64) error {
	var ts [2]unix.Timespec
	if !setInt(&ts[0].Sec, atimeSec) || !setInt(&ts[0].Nsec, atimeNsec) ||
		!setInt(&ts[1].Sec, mtimeSec) || !setInt(&ts[1].Nsec, mtimeNsec) {
		return unix.EINVAL
	}
	return Again(func() error { return unix.UtimesNanoAt(fd, "", ts[:], unix.AT_EMPTY_PATH) })
}

// setInt sets *p to v and reports whether it fits.
func setInt[T int32 | int64](p *T, v int64) bool {
	*p = T(v)
	return int64(*p) == v
}

// Fdatasync is fdatasync(2).
func (OS) Fdatasync(fd int) error { return Again(func() error { return unix.Fdatasync(fd) }) }

// Fsync is fsync(2).
func (OS) Fsync(fd int) error { return Again(func() error { return unix.Fsync(fd) }) }

// Syncfs is syncfs(2).
func (OS) Syncfs(fd int) error { return Again(func() error { return unix.Syncfs(fd) }) }

// Setxattr sets an extended attribute; an empty value removes it. It goes through /proc
// because fsetxattr(2) refuses O_PATH descriptors.
func (OS) Setxattr(fd int, name string, value []byte) error {
	err := Again(func() error {
		if len(value) == 0 {
			return unix.Removexattr(ProcPath(fd), name)
		}
		return unix.Setxattr(ProcPath(fd), name, value, 0)
	})
	if len(value) == 0 && errors.Is(err, unix.ENODATA) {
		return nil
	}
	return err
}

// SetUserXattr sets an extended attribute, whose value may be empty. flags are those of
// setxattr(2).
func (OS) SetUserXattr(fd int, name string, value []byte, flags int) error {
	return Again(func() error { return unix.Setxattr(ProcPath(fd), name, value, flags) })
}

// RemoveUserXattr removes an extended attribute.
func (OS) RemoveUserXattr(fd int, name string) error {
	return Again(func() error { return unix.Removexattr(ProcPath(fd), name) })
}

// The extended attributes that are the lists (acl(5), xattr(7)).
const (
	XattrAccess  = "system.posix_acl_access"
	XattrDefault = "system.posix_acl_default"
)

// IsLocal reports whether a file system of that kind (statfs' f_type) keeps the attributes
// of open files in memory. One with a network or a program behind it does not, and neither
// does one that lies over others (overlayfs).
func IsLocal(magic int64) bool {
	switch magic {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}
