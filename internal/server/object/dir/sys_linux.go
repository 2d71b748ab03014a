package dir

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// osSys is the Sys of the running kernel.
type osSys struct{}

// again repeats f while a signal interrupts it.
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

func (osSys) Tmpfile(dirfd int, mode uint32) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

func (osSys) Mkdirat(dirfd int, name string, mode uint32) error {
	return again(func() error { return unix.Mkdirat(dirfd, name, mode) })
}

// Linkat goes through /proc because AT_EMPTY_PATH asks for a privilege that
// link(2) itself does not need (linkat(2), "NOTES").
func (osSys) Linkat(fromfd, dirfd int, name string) error {
	from := procPath(fromfd)
	return again(func() error {
		return unix.Linkat(unix.AT_FDCWD, from, dirfd, name, unix.AT_SYMLINK_FOLLOW)
	})
}

func (osSys) Unlinkat(dirfd int, name string, flags int) error {
	return again(func() error { return unix.Unlinkat(dirfd, name, flags) })
}

func (osSys) Renameat(fromfd int, from string, tofd int, to string) error {
	return again(func() error { return unix.Renameat(fromfd, from, tofd, to) })
}

func (osSys) Pwrite(fd int, p []byte, off int64) (n int, err error) {
	err = again(func() (err error) {
		n, err = unix.Pwrite(fd, p, off)
		return err
	})
	return max(n, 0), err
}

func (osSys) Fdatasync(fd int) error { return again(func() error { return unix.Fdatasync(fd) }) }
func (osSys) Fsync(fd int) error     { return again(func() error { return unix.Fsync(fd) }) }
func (osSys) Syncfs(fd int) error    { return again(func() error { return unix.Syncfs(fd) }) }

// procPath names an open descriptor as a path (proc_pid_fd(5)).
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// openFolder opens a directory that is in dirfd, and nothing that a symbolic link
// leads to. Its descriptor can be listed and synced.
func openFolder(dirfd int, name string) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// openObject opens what name stands for to read it. It neither follows a link nor
// waits for the other end of a pipe.
func openObject(dirfd int, name string) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// readAt fills p from off on, and returns how much there was.
func readAt(fd int, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		var m int
		err := again(func() (err error) { m, err = unix.Pread(fd, p[n:], off+int64(n)); return err })
		if err != nil {
			return n, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return n, nil
}
