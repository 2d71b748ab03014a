//go:build linux

package fusefs

import (
	"encoding/binary"
	"errors"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// The names under which Linux has access control lists (acl(5)).
const (
	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default"
)

// The form of these attributes' values: a version, and entries of a tag, rights and an ID (posix_acl_xattr.h).
const (
	aclVersion   = 2
	aclHead      = 4
	aclEntrySize = 8
	aclNoID      = ^uint32(0)
)

func encodeACL(list []vfs.ACLEntry) []byte {
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range list {
		id := e.ID
		if e.Tag != vfs.ACLUser && e.Tag != vfs.ACLGroup {
			id = aclNoID
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(e.Tag))
		b = binary.LittleEndian.AppendUint16(b, uint16(e.Perm))
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	return b
}

func decodeACL(b []byte) ([]vfs.ACLEntry, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < aclHead || (len(b)-aclHead)%aclEntrySize != 0 || binary.LittleEndian.Uint32(b) != aclVersion {
		return nil, vfs.ErrInval
	}
	var list []vfs.ACLEntry
	for b = b[aclHead:]; len(b) > 0; b = b[aclEntrySize:] {
		tag, perm := binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
		if tag > uint16(vfs.ACLOther) || perm > 7 {
			return nil, vfs.ErrInval
		}
		e := vfs.ACLEntry{Tag: vfs.ACLTag(tag), Perm: uint32(perm)}
		if e.Tag == vfs.ACLUser || e.Tag == vfs.ACLGroup {
			e.ID = binary.LittleEndian.Uint32(b[4:])
		}
		list = append(list, e)
	}
	return list, nil
}

func isACL(name string) bool { return name == aclAccess || name == aclDefault }

// acl is the list that an attribute's name means. ok is false for other names.
func acl(all *vfs.ACL, name string) (list *[]vfs.ACLEntry, ok bool) {
	switch name {
	case aclAccess:
		return &all.Access, true
	case aclDefault:
		return &all.Default, true
	}
	return nil, false
}

// acler is the power to have lists, unless the mount does without.
func (m *Mount) acler(c *call) (vfs.ACLer, error) {
	p, ok := vfs.As[vfs.ACLer](c.fs)
	if !ok || m.opt.NoACL {
		return nil, vfs.ErrNotSupp
	}
	return p, nil
}

// xattr is the value of an attribute.
func (m *Mount) xattr(c *call, n *node, h vfs.Handle, name string) ([]byte, error) {
	if !isACL(name) {
		x, ok := vfs.As[vfs.Xattrer](c.fs)
		if !ok {
			return nil, vfs.ErrNotSupp
		}
		return x.Xattr(c, h, name)
	}
	l, err := m.lists(c, n, h)
	if err != nil {
		return nil, err
	}
	if v := l.value(name); v != nil {
		return v, nil
	}
	return nil, vfs.ErrNoXattr
}

// GetXAttr implements fuse.RawFileSystem.
func (m *Mount) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	c := m.begin(cancel, h)
	defer c.end()
	n, obj, ok := m.node(h.NodeId)
	if !ok {
		return 0, fuse.Status(staleNode)
	}
	value, err := m.xattr(c, n, obj, name)
	if err != nil {
		return 0, errno(c, err)
	}
	return handOut(dest, value)
}

// handOut copies a value. An empty dest asks for its size.
func handOut(dest, value []byte) (uint32, fuse.Status) {
	if len(dest) > 0 && len(dest) < len(value) {
		return uint32(len(value)), fuse.ERANGE
	}
	copy(dest, value)
	return uint32(len(value)), fuse.OK
}

// ListXAttr implements fuse.RawFileSystem. Lists are named where there are some.
func (m *Mount) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	c := m.begin(cancel, h)
	defer c.end()
	n, obj, ok := m.node(h.NodeId)
	if !ok {
		return 0, fuse.Status(staleNode)
	}
	var names []byte
	if x, ok := vfs.As[vfs.Xattrer](c.fs); ok {
		all, err := x.Xattrs(c, obj)
		if err != nil && !errors.Is(err, vfs.ErrNotSupp) {
			return 0, errno(c, err)
		}
		for _, name := range all {
			names = append(append(names, name...), 0)
		}
	}
	l, err := m.lists(c, n, obj)
	if err != nil {
		l = &lists{} // there are none here, or they cannot be told: the attributes are named all the same
	}
	for _, name := range []string{aclAccess, aclDefault} {
		if l.value(name) != nil {
			names = append(append(names, name...), 0)
		}
	}
	return handOut(dest, names)
}

// SetXAttr implements fuse.RawFileSystem.
func (m *Mount) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	c := m.begin(cancel, &in.InHeader)
	defer c.end()
	n, obj, ok := m.node(in.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	if isACL(name) {
		list, err := decodeACL(data)
		if err == nil {
			err = m.setACL(c, obj, name, list)
			n.relisted()
		}
		return errno(c, err)
	}
	x, ok := vfs.As[vfs.Xattrer](c.fs)
	if !ok {
		return fuse.ENOTSUP
	}
	how := vfs.XattrEither
	switch {
	case in.Flags&unix.XATTR_CREATE != 0:
		how = vfs.XattrCreate
	case in.Flags&unix.XATTR_REPLACE != 0:
		how = vfs.XattrReplace
	}
	return errno(c, x.SetXattr(c, obj, name, data, how))
}

// RemoveXAttr implements fuse.RawFileSystem.
func (m *Mount) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	c := m.begin(cancel, h)
	defer c.end()
	n, obj, ok := m.node(h.NodeId)
	if !ok {
		return fuse.Status(staleNode)
	}
	if isACL(name) {
		err := m.setACL(c, obj, name, nil)
		n.relisted()
		return errno(c, err)
	}
	x, ok := vfs.As[vfs.Xattrer](c.fs)
	if !ok {
		return fuse.ENOTSUP
	}
	return errno(c, x.RemoveXattr(c, obj, name))
}

// setACL replaces one of the two lists. An access list that is taken away leaves what the mode says without it.
func (m *Mount) setACL(c *call, h vfs.Handle, name string, list []vfs.ACLEntry) error {
	p, err := m.acler(c)
	if err != nil {
		return err
	}
	all, err := p.ACL(c, h)
	if err != nil {
		return err
	}
	if len(list) == 0 && name == aclAccess {
		list = minimal(all.Access)
	}
	to, _ := acl(&all, name)
	*to = list
	return p.SetACL(c, h, all)
}

// minimal are the three entries of a list that a mode can say. The group's are no more than the mask has let through.
func minimal(list []vfs.ACLEntry) []vfs.ACLEntry {
	mask := aclNoID
	for _, e := range list {
		if e.Tag == vfs.ACLMask {
			mask = e.Perm
		}
	}
	var three []vfs.ACLEntry
	for _, e := range list {
		switch e.Tag {
		case vfs.ACLGroupObj:
			e.Perm &= mask
			three = append(three, e)
		case vfs.ACLUserObj, vfs.ACLOther:
			three = append(three, e)
		}
	}
	return three
}
