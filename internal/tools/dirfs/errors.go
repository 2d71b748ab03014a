package dirfs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/nfsbox/nfsbox/vfs"
)

// fail maps an error of the host to one of the contract. Everyday errors become their bare
// Status. Others also say what was tried.
func fail(op string, err error) error {
	var s vfs.Status
	if err == nil || errors.As(err, &s) {
		return err
	}
	s, known := vfs.StatusOf(err)
	if errors.Is(err, syscall.EBADF) {
		s, known = vfs.ErrServerFault, false // a fault of this package: the descriptor should be open
	}
	if errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("dirfs: %s: %w: %s (ulimit -n is too small; %d is enough)", op, s, err.Error(), enough)
	}
	if !known || s == vfs.ErrIO || s == vfs.ErrBusy || s == vfs.ErrServerFault {
		return fmt.Errorf("dirfs: %s: %w: %s", op, s, err.Error())
	}
	return s
}
