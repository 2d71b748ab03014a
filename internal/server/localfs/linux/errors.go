//go:build linux

package linux

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// Close closes fd and returns err; if that is nil, the error of closing.
func Close(fd int, err error) error {
	if e := unix.Close(fd); err == nil && e != nil {
		return Fail("close", e)
	}
	return err
}

// Fail turns an error of the kernel into one of the contract; nil stays nil. An everyday
// error becomes its vfs.Status and nothing else, since a LOOKUP that finds nothing must not
// cost a formatted message. One that an operator will want to understand keeps op, what was
// tried.
func Fail(op string, err error) error {
	if err == nil {
		return nil
	}
	var e syscall.Errno
	if !errors.As(err, &e) {
		return err
	}
	s, known := vfs.FromErrno(e)
	switch {
	case e == unix.EBADF:
		// Ours, not the handle's: a descriptor that should have been open.
		return fmt.Errorf("localfs: %s: %w: %s", op, vfs.ErrServerFault, e.Error())
	case !known, s == vfs.ErrIO, s == vfs.ErrBusy:
		return fmt.Errorf("localfs: %s: %w: %s", op, s, e.Error())
	}
	return s
}

// IsGone reports whether err says that an object is not there, or not there any more.
func IsGone(err error) bool {
	return errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrNotDir)
}
