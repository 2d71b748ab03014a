package sim

import (
	"errors"

	"golang.org/x/sys/unix"
)

// listNames are the extended attributes that are access control lists (acl(5)):
// they belong to the attributes of an object, and chmod changes them.
var listNames = [...]string{"system.posix_acl_access", "system.posix_acl_default"}

// listSetter is a [Sys] that can set extended attributes.
type listSetter interface {
	Setxattr(fd int, name string, value []byte) error
}

// Setxattr sets an access control list. It is EOPNOTSUPP if the Sys below cannot.
func (d *Disk) Setxattr(fd int, name string, value []byte) error {
	inner, ok := d.inner.(listSetter)
	if !ok {
		return unix.EOPNOTSUPP
	}
	return d.changeAttr("setxattr", fd, func() error { return inner.Setxattr(fd, name, value) })
}

func (a *savedAttr) saveLists(fd int) error {
	for n, name := range listNames {
		buf := make([]byte, 64<<10) // XATTR_SIZE_MAX
		got, err := unix.Getxattr(procPath(fd), name, buf)
		if err == nil {
			a.lists[n] = buf[:got:got]
		} else if !noList(err) {
			return err
		}
	}
	return nil
}

func (a *savedAttr) turnBackLists(fd int) error {
	for n, name := range listNames {
		var err error
		if a.lists[n] == nil {
			err = unix.Removexattr(procPath(fd), name)
		} else {
			err = unix.Setxattr(procPath(fd), name, a.lists[n], 0)
		}
		if err != nil && (a.lists[n] != nil || !noList(err)) {
			return err
		}
	}
	return nil
}

// noList reports whether err says that there is no list, or cannot be one.
func noList(err error) bool {
	return errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.EACCES) // a default list of what is no directory
}
