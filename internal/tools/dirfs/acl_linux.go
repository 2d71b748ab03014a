package dirfs

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.ACLer = (*FS)(nil)

// The extended attributes that hold the lists (acl(5), xattr(7)).
const (
	xattrAccess  = "system.posix_acl_access"
	xattrDefault = "system.posix_acl_default"
)

// ACL implements vfs.ACLer.
func (f *FS) ACL(ctx context.Context, h vfs.Handle) (acl vfs.ACL, err error) {
	if err := f.begin(ctx); err != nil {
		return acl, err
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return acl, err
	}
	defer f.leave(o.s)
	defer x.close()
	if acl.Access, err = x.list(xattrAccess); err != nil {
		return vfs.ACL{}, err
	}
	if acl.Access == nil {
		acl.Access = posixacl.FromMode(o.st.Mode)
	}
	if o.st.Type == vfs.TypeDir {
		if acl.Default, err = x.list(xattrDefault); err != nil {
			return vfs.ACL{}, err
		}
	}
	return acl, nil
}

// SetACL implements vfs.ACLer. It sets both lists or neither.
func (f *FS) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	access, err := posixacl.Canonical(acl.Access)
	if err != nil {
		return err
	}
	var dflt []vfs.ACLEntry
	if len(acl.Default) > 0 {
		if dflt, err = posixacl.Canonical(acl.Default); err != nil {
			return err
		}
	}
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return err
	}
	defer f.leave(o.s)
	defer x.close()
	switch {
	case o.st.Type == vfs.TypeSymlink:
		return vfs.ErrNotSupp
	case o.st.Type != vfs.TypeDir && len(dflt) > 0:
		return vfs.ErrInval
	case o.st.Type != vfs.TypeDir:
		return x.setList(xattrAccess, access)
	}
	old, err := x.list(xattrDefault)
	if err != nil {
		return err
	}
	if len(old)+len(dflt) > 0 {
		if err := x.setList(xattrDefault, dflt); err != nil {
			return err
		}
	}
	if err := x.setList(xattrAccess, access); err != nil {
		return errors.Join(err, x.setList(xattrDefault, old))
	}
	return nil
}

// list is one of the object's lists; nil if it has none. It goes through /proc because
// fgetxattr(2) refuses O_PATH descriptors.
func (x *hostObject) list(name string) ([]vfs.ACLEntry, error) {
	buf := make([]byte, posixacl.XattrMax)
	n, err := unix.Getxattr(procPath(x.fd), name, buf)
	switch {
	case errors.Is(err, unix.ENODATA):
		return nil, nil
	case errors.Is(err, unix.ERANGE):
		return nil, fmt.Errorf("dirfs: an access control list of more than %d entries: %w", posixacl.MaxEntries, vfs.ErrServerFault)
	case err != nil:
		return nil, fail("getxattr", err)
	}
	list, err := posixacl.Parse(buf[:n])
	if err != nil {
		return nil, fmt.Errorf("dirfs: %w", err)
	}
	return list, nil
}

// setList sets one of the object's lists; an empty list removes it.
func (x *hostObject) setList(name string, list []vfs.ACLEntry) error {
	err := again(func() error {
		if len(list) == 0 {
			return unix.Removexattr(procPath(x.fd), name)
		}
		return unix.Setxattr(procPath(x.fd), name, posixacl.Append(nil, list), 0)
	})
	if len(list) == 0 && errors.Is(err, unix.ENODATA) {
		return nil
	}
	return fail("setxattr", err)
}
