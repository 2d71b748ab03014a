package way

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hasList reports whether a directory has an access list (acl(5)). If the kernel refuses to
// tell, the answer is yes: the list may let anybody write.
func hasList(path string) bool {
	_, err := unix.Getxattr(path, "system.posix_acl_access", nil)
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS)
}
