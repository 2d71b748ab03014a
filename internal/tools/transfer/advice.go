package transfer

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// Some errors need the user to act. Their texts say what to do.

// inTheWay explains err, of giving something that is no directory the name of a directory.
func inTheWay(what string, err error) error {
	for _, s := range [...]vfs.Status{vfs.ErrIsDir, vfs.ErrExist, vfs.ErrNotEmpty} {
		if errors.Is(err, s) {
			return fmt.Errorf("a directory has the name in the destination, and is not replaced; move or remove it: %s: %w", what, err)
		}
	}
	return frozen(what, err)
}

// notMade explains err, of making the object. A user who may not make devices gets the same
// status as for an immutable directory.
func (n *node) notMade(err error) error {
	if device := n.how.Type == vfs.TypeBlock || n.how.Type == vfs.TypeChar; device && errors.Is(err, vfs.ErrPerm) {
		return fmt.Errorf("create: %w; a device is made by root alone, or with CAP_MKNOD, on the host that has the destination", err)
	}
	return frozen("create", err)
}

// frozen explains err, of changing the destination. The status does not tell an immutable
// object from one that the caller may not change.
func frozen(what string, err error) error {
	if errors.Is(err, vfs.ErrPerm) {
		return fmt.Errorf("%s: %w; or it, or its directory, is immutable or append-only (see lsattr)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
