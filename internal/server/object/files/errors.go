package files

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// fail names the call that failed, and gives its error the meaning that it has in the contract,
// if any.
func fail(call string, err error) error {
	if err == nil {
		return nil
	}
	for _, m := range [...]struct {
		status vfs.Status
		is     error
	}{
		{vfs.ErrNoSpace, object.ErrNoSpace},
		{vfs.ErrQuota, object.ErrNoSpace},
		{vfs.ErrFBig, object.ErrTooLarge},
		{vfs.ErrBusy, object.ErrBusy},
	} {
		if errors.Is(err, m.status) {
			return fmt.Errorf("%w: %s: %w", m.is, call, err)
		}
	}
	if errors.Is(err, vfs.ErrROFS) {
		return fmt.Errorf("the store is on a file system, or an export, that is read-only: %s: %w", call, err)
	}
	return fmt.Errorf("%s: %w", call, err)
}

// gone reports whether a handle has no object any more.
func gone(err error) bool { return errors.Is(err, vfs.ErrStale) || errors.Is(err, vfs.ErrBadHandle) }

// unsure reports whether a change may have been made although it has failed.
func unsure(err error) bool { return errors.Is(err, vfs.ErrUnknownOutcome) }

func foreign(path, what string) error {
	return fmt.Errorf("%w: %q is %s", object.ErrForeign, path, what)
}
