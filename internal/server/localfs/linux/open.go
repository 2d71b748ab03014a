//go:build linux

package linux

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// openPath opens name in dirfd as a mere reference: nothing is read, no device
// woken, and a symbolic link is itself.
func OpenPath(dirfd int, name string, flags int) (fd int, err error) {
	err = Again(func() (err error) {
		fd, err = unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// reopen opens what fd refers to with other flags, under the credentials of the
// calling thread. O_NONBLOCK makes a lease of another program an EAGAIN, which
// the client tries again, instead of a thread that waits.
func Reopen(fd, flags int) (n int, err error) {
	err = Again(func() (err error) {
		n, err = unix.Open(ProcPath(fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
	return n, err
}

// procPath names an open descriptor as a path. Following it leads to the very
// object that is open, wherever its name has gone, and checks only the object's
// own permissions (proc_pid_fd(5)).
func ProcPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// again repeats f while a signal interrupts it. The runtime's own signals for
// preemption make EINTR an everyday answer on some file systems.
func Again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
