//go:build linux

package localfs

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

var _ vfs.ACLer = (*FS)(nil)

// aclSys is a [Sys] that can set access control lists. With one that cannot,
// SetACL is ErrNotSupp.
type aclSys interface {
	// Setxattr sets an extended attribute of the object behind fd, which may be
	// an O_PATH descriptor; an empty value removes it, if it is there.
	Setxattr(fd int, name string, value []byte) error
}

// ACL implements vfs.ACLer. As for attributes, the handle is right enough.
func (v *FS) ACL(ctx context.Context, x vfs.Handle) (acl vfs.ACL, err error) {
	if err := v.begin(ctx, classMeta); err != nil {
		return acl, err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return acl, err
	}
	defer v.fds.Unpin(d)
	var st linux.Stat
	if err := v.stat(d, &st); err != nil {
		return acl, err
	}
	if acl.Access, err = readACL(d, linux.XattrAccess); err != nil {
		return vfs.ACL{}, err
	}
	if acl.Access == nil {
		acl.Access = posixacl.FromMode(uint32(st.Mode))
	}
	if d.Kind == unix.S_IFDIR {
		if acl.Default, err = readACL(d, linux.XattrDefault); err != nil {
			return vfs.ACL{}, err
		}
	}
	return acl, nil
}

// SetACL implements vfs.ACLer, as the caller: the owner may. Like every change of
// attributes it is stable after Sync. Either both lists are set or none.
func (v *FS) SetACL(ctx context.Context, x vfs.Handle, acl vfs.ACL) error {
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
	if err := v.beginChange(ctx, classMeta); err != nil {
		return err
	}
	defer v.end(classMeta)
	d, err := v.object(x)
	if err != nil {
		return err
	}
	defer v.fds.Unpin(d)
	defer v.unlock(v.lock(d))
	var st linux.Stat
	if err := v.stat(d, &st); err != nil {
		return err
	}
	switch {
	case d.Kind == unix.S_IFLNK:
		return vfs.ErrNotSupp
	case !v.owns(&st):
		return vfs.ErrPerm
	case len(dflt) > 0 && d.Kind != unix.S_IFDIR:
		return vfs.ErrInval
	}
	err = v.setLists(d, access, dflt)
	v.changed(x, &st, vfs.ChangeRights, err)
	return err
}

// setLists sets both lists, which are two attributes to the kernel: the default
// one first, and back to what it was if the other cannot be set.
func (v *FS) setLists(d *fdcache.Desc, access, dflt []vfs.ACLEntry) error {
	if d.Kind != unix.S_IFDIR {
		return v.writeACL(d, linux.XattrAccess, access)
	}
	old, err := readACL(d, linux.XattrDefault)
	if err != nil {
		return err
	}
	if len(old)+len(dflt) > 0 {
		if err := v.writeACL(d, linux.XattrDefault, dflt); err != nil {
			return err
		}
	}
	if err := v.writeACL(d, linux.XattrAccess, access); err != nil {
		return errors.Join(err, v.writeACL(d, linux.XattrDefault, old))
	}
	return nil
}

// readACL returns one list of d, nil if it has none of its own. On a file system
// without lists it is ErrNotSupp.
func readACL(d *fdcache.Desc, name string) ([]vfs.ACLEntry, error) {
	buf := make([]byte, posixacl.XattrMax)
	n, err := unix.Getxattr(linux.ProcPath(d.FD), name, buf)
	switch {
	case errors.Is(err, unix.ENODATA):
		return nil, nil
	case errors.Is(err, unix.ERANGE):
		return nil, fmt.Errorf("localfs: an access control list of more than %d entries: %w", posixacl.MaxEntries, vfs.ErrServerFault)
	case err != nil:
		return nil, linux.Fail("getxattr", err)
	}
	list, err := posixacl.Parse(buf[:n])
	if err != nil {
		return nil, fmt.Errorf("localfs: %w", err)
	}
	return list, nil
}

func (v *FS) writeACL(d *fdcache.Desc, name string, list []vfs.ACLEntry) error {
	sys, ok := v.disk.(aclSys)
	if !ok {
		return vfs.ErrNotSupp
	}
	return v.as(func() error { return linux.Fail("setxattr", sys.Setxattr(d.FD, name, posixacl.Append(nil, list))) })
}
