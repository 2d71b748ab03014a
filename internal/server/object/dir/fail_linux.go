package dir

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// fail names the system call that failed, and gives its error the meaning that it
// has in the contract, if any.
func fail(call string, err error) error {
	if err == nil {
		return nil
	}
	for _, m := range [...]struct {
		errno unix.Errno
		is    error
	}{
		{unix.ENOSPC, object.ErrNoSpace},
		{unix.EDQUOT, object.ErrNoSpace},
		{unix.EFBIG, object.ErrTooLarge},
		{unix.EMFILE, object.ErrBusy},
		{unix.ENFILE, object.ErrBusy},
		{unix.ENOMEM, object.ErrBusy},
		{unix.EAGAIN, object.ErrBusy},
	} {
		if errors.Is(err, m.errno) {
			return fmt.Errorf("%w: %s: %w", m.is, call, err)
		}
	}
	return fmt.Errorf("%s: %w", call, err)
}

func isOneOf(err error, list ...unix.Errno) bool {
	return slices.ContainsFunc(list, func(errno unix.Errno) bool { return errors.Is(err, errno) })
}
