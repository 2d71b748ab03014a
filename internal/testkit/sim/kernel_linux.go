package sim

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Kernel is the plain [Sys] of the running kernel, for use below a [Disk]. Its syncs are
// errors, because a Disk does not pass them on.
type Kernel struct{}

var errSynced = errors.New("sim: a sync reached the disk below")

// again repeats a call while signals interrupt it.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Openat implements Sys.
func (Kernel) Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return fd, err
}

// Mkdirat implements Sys.
func (Kernel) Mkdirat(dirfd int, name string, mode uint32) error {
	return unix.Mkdirat(dirfd, name, mode)
}

// Symlinkat implements Sys.
func (Kernel) Symlinkat(target string, dirfd int, name string) error {
	return unix.Symlinkat(target, dirfd, name)
}

// Mknodat implements Sys.
func (Kernel) Mknodat(dirfd int, name string, mode uint32, dev uint64) error {
	return unix.Mknodat(dirfd, name, mode, int(dev))
}

// Linkat implements Sys.
func (Kernel) Linkat(fromfd, dirfd int, name string) error {
	return unix.Linkat(unix.AT_FDCWD, procPath(fromfd), dirfd, name, unix.AT_SYMLINK_FOLLOW)
}

// Unlinkat implements Sys.
func (Kernel) Unlinkat(dirfd int, name string, flags int) error {
	return unix.Unlinkat(dirfd, name, flags)
}

// Renameat implements Sys.
func (Kernel) Renameat(fromfd int, from string, tofd int, to string) error {
	return unix.Renameat(fromfd, from, tofd, to)
}

// RenameatNoReplace is Renameat where nothing is replaced: EEXIST.
func (Kernel) RenameatNoReplace(fromfd int, from string, tofd int, to string) error {
	return again(func() error { return unix.Renameat2(fromfd, from, tofd, to, unix.RENAME_NOREPLACE) })
}

// Pwrite implements Sys.
func (Kernel) Pwrite(fd int, p []byte, off int64) (n int, err error) {
	err = again(func() (err error) { n, err = unix.Pwrite(fd, p, off); return err })
	return max(n, 0), err
}

// Ftruncate implements Sys.
func (Kernel) Ftruncate(fd int, size int64) error {
	return again(func() error { return unix.Ftruncate(fd, size) })
}

// Fallocate implements Sys.
func (Kernel) Fallocate(fd int, mode uint32, off, n int64) error {
	return again(func() error { return unix.Fallocate(fd, mode, off, n) })
}

// Fchmod implements Sys.
func (Kernel) Fchmod(fd int, mode uint32) error { return unix.Chmod(procPath(fd), mode) }

// Fchown implements Sys.
func (Kernel) Fchown(fd, uid, gid int) error {
	return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH)
}

// Futimens implements Sys.
func (Kernel) Futimens(fd int, atimeSec, atimeNsec, mtimeSec, mtimeNsec int64) error {
	ts := []unix.Timespec{{Sec: atimeSec, Nsec: atimeNsec}, {Sec: mtimeSec, Nsec: mtimeNsec}}
	return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH)
}

// Setxattr sets an access control list; an empty one is none.
func (Kernel) Setxattr(fd int, name string, value []byte) error {
	if len(value) > 0 {
		return unix.Setxattr(procPath(fd), name, value, 0)
	}
	if err := unix.Removexattr(procPath(fd), name); !errors.Is(err, unix.ENODATA) {
		return err
	}
	return nil
}

// Fdatasync implements Sys.
func (Kernel) Fdatasync(int) error { return errSynced }

// Fsync implements Sys.
func (Kernel) Fsync(int) error { return errSynced }

// Syncfs implements Sys.
func (Kernel) Syncfs(int) error { return errSynced }
