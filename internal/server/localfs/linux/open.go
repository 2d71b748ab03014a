//go:build linux

package linux

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenPath opens name in dirfd as a mere reference (O_PATH): nothing is read, no device is
// woken, and a symbolic link is itself.
func OpenPath(dirfd int, name string, flags int) (fd int, err error) {
	err = Again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// Reopen opens what fd refers to with other flags, under the credentials of the calling
// thread. With O_NONBLOCK another program's lease is an EAGAIN, which the client tries
// again, and not a thread that waits.
func Reopen(fd, flags int) (n int, err error) {
	err = Again(func() (err error) {
		n, err = unix.Open(ProcPath(fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
	return n, err
}

// ProcPath names an open descriptor as a path. It leads to the very object that is open,
// wherever its name has gone, and only the object's own permissions are checked
// (proc_pid_fd(5)).
func ProcPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Again repeats f while a signal interrupts it (EINTR). The runtime preempts by signals, so
// some file systems answer so every day.
func Again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
