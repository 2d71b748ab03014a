package vfs

import (
	"context"
	"strings"
)

// Xattrer is an FS whose regular files and directories have extended attributes: bytes under
// names (xattr(7); RFC 8276). Where the file system below has none, every method is [ErrNotSupp].
// Objects of other types have none of users: for such a name, and where they can have no other,
// it is ErrNotSupp as well.
//
// A name is that of Linux, with its namespace: "user.origin". Every Xattrer has those of
// users ("user."). What is a directory of the caller's own host, and acts by the process's
// rights, may have "trusted." and "security." as well, but for the labels of the host's own
// policy, such as "security.selinux", and those of objects of every type. Other names belong to the system, are not listed, and
// are ErrNotSupp; access control lists are those of [ACLer].
//
// The attributes belong to the object: all its names share them, and a rename keeps them. A
// change moves the object's ctime and Change, and not its mtime. It is as stable as one by
// SetAttr. The methods may be called concurrently; each sees and leaves whole values.
type Xattrer interface {
	// Xattrs returns the names of an object's attributes, in any order. It takes no more
	// right than GetAttr. More than [MaxXattrNames] bytes of names are [ErrXattr2Big].
	Xattrs(ctx context.Context, h Handle) ([]string, error)
	// Xattr returns the value of one, which may be empty and is the caller's. The caller
	// must have the right to read the object. A missing one is [ErrNoXattr].
	Xattr(ctx context.Context, h Handle, name string) ([]byte, error)
	// SetXattr gives one a value, which it does not keep. The caller must have the right to
	// write to the object, and own it if it is a sticky directory. A value of more than
	// [MaxXattr] bytes is ErrXattr2Big. What the file system has no room for is
	// [ErrNoSpace]: many take much less than these bounds.
	SetXattr(ctx context.Context, h Handle, name string, value []byte, how XattrHow) error
	// RemoveXattr removes one. The rights are those of SetXattr. A missing one is
	// ErrNoXattr.
	RemoveXattr(ctx context.Context, h Handle, name string) error
}

// XattrHow says whether SetXattr may make an attribute, and whether it may replace one
// (RFC 8276, setxattr_option4).
type XattrHow uint8

// What SetXattr may do.
const (
	XattrEither  XattrHow = iota // make or replace
	XattrCreate                  // only make: [ErrExist]
	XattrReplace                 // only replace: [ErrNoXattr]
)

// The bounds of extended attributes, those of Linux (limits.h), in bytes.
const (
	MaxXattrName  = 255      // of a name, with its namespace: [ErrNameTooLong]
	MaxXattr      = 64 << 10 // of a value: [ErrXattr2Big]
	MaxXattrNames = 64 << 10 // of all names of an object, each with a zero byte behind it
)

// XattrUser begins the names of users' attributes.
const XattrUser = "user."

// CheckXattr returns an error unless name is that of a user's attribute: [ErrNotSupp] for
// another namespace, ErrNameTooLong, and [ErrInval] for one that is empty behind its
// namespace, or has a zero byte.
func CheckXattr(name string) error {
	rest, ok := strings.CutPrefix(name, XattrUser)
	switch {
	case len(name) > MaxXattrName:
		return ErrNameTooLong
	case !ok:
		return ErrNotSupp
	case rest == "" || strings.IndexByte(name, 0) >= 0:
		return ErrInval
	}
	return nil
}
