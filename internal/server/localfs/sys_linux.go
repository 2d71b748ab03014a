package localfs

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// osSys is the Sys of the running kernel.
type osSys struct{}

// procPath names an open descriptor as a path. Following it leads to the very
// object that is open, wherever its name has gone, and checks only the object's
// own permissions (proc_pid_fd(5)).
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// again repeats f while a signal interrupts it. The runtime's own signals for
// preemption make EINTR an everyday answer on some file systems.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (osSys) Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, mode)
		return err
	})
	return fd, err
}

func (osSys) Mkdirat(dirfd int, name string, mode uint32) error {
	return again(func() error { return unix.Mkdirat(dirfd, name, mode) })
}

func (osSys) Symlinkat(target string, dirfd int, name string) error {
	return again(func() error { return unix.Symlinkat(target, dirfd, name) })
}

func (osSys) Mknodat(dirfd int, name string, mode uint32, dev uint64) error {
	return again(func() error { return unix.Mknodat(dirfd, name, mode, int(dev)) })
}

// Linkat goes through /proc because AT_EMPTY_PATH asks for a privilege that
// link(2) itself does not need.
func (osSys) Linkat(fromfd, dirfd int, name string) error {
	return again(func() error {
		return unix.Linkat(unix.AT_FDCWD, procPath(fromfd), dirfd, name, unix.AT_SYMLINK_FOLLOW)
	})
}

// OpenNameless fails with EOPNOTSUPP on file systems that cannot do that.
func (osSys) OpenNameless(dirfd int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// LinkNameless goes through /proc where AT_EMPTY_PATH asks for a privilege that the
// thread has not got: that is ENOENT.
func (s osSys) LinkNameless(fd, dirfd int, name string) error {
	err := again(func() error { return unix.Linkat(fd, "", dirfd, name, unix.AT_EMPTY_PATH) })
	if errors.Is(err, unix.ENOENT) {
		return s.Linkat(fd, dirfd, name)
	}
	return err
}

func (osSys) Unlinkat(dirfd int, name string, flags int) error {
	return again(func() error { return unix.Unlinkat(dirfd, name, flags) })
}

func (osSys) Renameat(fromfd int, from string, tofd int, to string) error {
	return again(func() error { return unix.Renameat(fromfd, from, tofd, to) })
}

// RenameatNoReplace fails with EINVAL on file systems that cannot do that.
func (osSys) RenameatNoReplace(fromfd int, from string, tofd int, to string) error {
	return again(func() error { return unix.Renameat2(fromfd, from, tofd, to, unix.RENAME_NOREPLACE) })
}

func (osSys) Pwrite(fd int, p []byte, off int64) (n int, err error) {
	err = again(func() (err error) {
		n, err = unix.Pwrite(fd, p, off)
		return err
	})
	return max(n, 0), err
}

func (osSys) Ftruncate(fd int, size int64) error {
	return again(func() error { return unix.Ftruncate(fd, size) })
}

func (osSys) Fallocate(fd int, mode uint32, off, n int64) error {
	return again(func() error { return unix.Fallocate(fd, mode, off, n) })
}

// Fchmod goes through /proc because fchmod(2) refuses O_PATH descriptors.
func (osSys) Fchmod(fd int, mode uint32) error {
	return again(func() error { return unix.Chmod(procPath(fd), mode) })
}

func (osSys) Fchown(fd int, uid, gid int) error {
	return again(func() error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) })
}

// Futimens refuses times that the kernel's type cannot hold on 32-bit machines.
func (osSys) Futimens(fd int, atimeSec, atimeNsec, mtimeSec, mtimeNsec int64) error {
	var ts [2]unix.Timespec
	if !setInt(&ts[0].Sec, atimeSec) || !setInt(&ts[0].Nsec, atimeNsec) ||
		!setInt(&ts[1].Sec, mtimeSec) || !setInt(&ts[1].Nsec, mtimeNsec) {
		return unix.EINVAL
	}
	return again(func() error { return unix.UtimesNanoAt(fd, "", ts[:], unix.AT_EMPTY_PATH) })
}

// setInt sets *p to v and reports whether it fits.
func setInt[T int32 | int64](p *T, v int64) bool {
	*p = T(v)
	return int64(*p) == v
}

func (osSys) Fdatasync(fd int) error { return again(func() error { return unix.Fdatasync(fd) }) }
func (osSys) Fsync(fd int) error     { return again(func() error { return unix.Fsync(fd) }) }
func (osSys) Syncfs(fd int) error    { return again(func() error { return unix.Syncfs(fd) }) }
