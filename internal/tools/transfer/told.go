package transfer

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// What somebody has to do something about is told in words that say what.

// inTheWay is an error of giving a name to what is no directory, if a directory has it.
func inTheWay(what string, err error) error {
	for _, s := range [...]vfs.Status{vfs.ErrIsDir, vfs.ErrExist, vfs.ErrNotEmpty} {
		if errors.Is(err, s) {
			return fmt.Errorf("a directory has the name in the destination, and is not replaced; move or remove it: %s: %w", what, err)
		}
	}
	return frozen(what, err)
}

// notMade is an error of making the object. A host lets few make devices, and says to the
// others what it says of an immutable directory.
func (n *node) notMade(err error) error {
	if device := n.how.Type == vfs.TypeBlock || n.how.Type == vfs.TypeChar; device && errors.Is(err, vfs.ErrPerm) {
		return fmt.Errorf("create: %w; a device is made by root alone, or with CAP_MKNOD, on the host that has the destination", err)
	}
	return frozen("create", err)
}

// frozen is an error of changing the destination. What may not be changed by its owner, or
// by root, is not told apart by a status.
func frozen(what string, err error) error {
	if errors.Is(err, vfs.ErrPerm) {
		return fmt.Errorf("%s: %w; or it, or its directory, is immutable or append-only (see lsattr)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
