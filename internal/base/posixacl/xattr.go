package posixacl

import (
	"encoding/binary"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// The kernel's format of a list, as the value of an extended attribute, little endian
// (linux/posix_acl_xattr.h): a version, then for each entry tag uint16, rights uint16, id uint32.
const (
	xattrVersion = 2
	xattrHead    = 4
	xattrEntry   = 8
)

// XattrMax is the size of the longest value that Parse accepts, in bytes.
const XattrMax = xattrHead + xattrEntry*MaxEntries

// Parse decodes a list in the kernel's format. No bytes are a nil list. A malformed value is vfs.ErrIO;
// Canonical checks whether the entries are a valid list.
func Parse(b []byte) ([]vfs.ACLEntry, error) {
	le := binary.LittleEndian
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < xattrHead || (len(b)-xattrHead)%xattrEntry != 0 || le.Uint32(b) != xattrVersion {
		return nil, fmt.Errorf("a malformed access control list of %d bytes: %w", len(b), vfs.ErrIO)
	}
	var list []vfs.ACLEntry
	for b = b[xattrHead:]; len(b) > 0; b = b[xattrEntry:] {
		e := vfs.ACLEntry{Tag: vfs.ACLTag(le.Uint16(b)), Perm: uint32(le.Uint16(b[2:]))}
		if e.Tag == vfs.ACLUser || e.Tag == vfs.ACLGroup {
			e.ID = le.Uint32(b[4:])
		}
		list = append(list, e)
	}
	return list, nil
}

// Append is the inverse of Parse. An empty list is no bytes.
func Append(b []byte, list []vfs.ACLEntry) []byte {
	le := binary.LittleEndian
	if len(list) == 0 {
		return b
	}
	b = le.AppendUint32(b, xattrVersion)
	for _, e := range list {
		id := uint32(noID)
		if e.Tag == vfs.ACLUser || e.Tag == vfs.ACLGroup {
			id = e.ID
		}
		b = le.AppendUint16(b, uint16(e.Tag))
		b = le.AppendUint16(b, uint16(e.Perm))
		b = le.AppendUint32(b, id)
	}
	return b
}
