package acl

import (
	"cmp"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
)

// toWire fills w with as much of acl as mask asks for. a are the attributes of
// the object, whose owner and group Solaris wants beside their entries.
func toWire(w *nfsacl3.Secattr, mask uint32, acl *vfs.ACL, a *vfs.Attr) {
	w.Mask = mask
	if mask&(nfsacl3.NA_ACL|nfsacl3.NA_ACLCNT) != 0 {
		list := entries(acl.Access, 0, a)
		w.Aclcnt = int32(len(list))
		if mask&nfsacl3.NA_ACL != 0 {
			w.Aclent = list
		}
	}
	if mask&(nfsacl3.NA_DFACL|nfsacl3.NA_DFACLCNT) != 0 {
		list := entries(acl.Default, nfsacl3.NA_ACL_DEFAULT, a)
		w.Dfaclcnt = int32(len(list))
		if mask&nfsacl3.NA_DFACL != 0 {
			w.Dfaclent = list
		}
	}
}

// entries is a list in the order and with the mask that clients expect.
func entries(list []vfs.ACLEntry, flag int32, a *vfs.Attr) []nfsacl3.Aclent {
	if len(list) == 0 {
		return nil
	}
	group, masked := uint32(0), false
	sent := make([]nfsacl3.Aclent, 0, len(list)+1)
	for _, e := range list {
		switch e.Tag {
		case vfs.ACLUserObj:
			e.ID = a.UID
		case vfs.ACLGroupObj:
			e.ID, group = a.GID, e.Perm
		case vfs.ACLMask:
			masked = true
		}
		sent = append(sent, nfsacl3.Aclent{Type: int32(e.Tag) | flag, Id: e.ID, Perm: e.Perm})
	}
	if !masked {
		sent = append(sent, nfsacl3.Aclent{Type: int32(vfs.ACLMask) | flag, Perm: group})
	}
	slices.SortFunc(sent, func(a, b nfsacl3.Aclent) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Id, b.Id))
	})
	return sent
}

// fromWire reads the lists that w mentions. Those that it does not are not looked
// at.
func fromWire(w *nfsacl3.Secattr) (acl vfs.ACL, err error) {
	if w.Mask&^allMasks != 0 {
		return acl, vfs.ErrInval
	}
	if w.Mask&nfsacl3.NA_ACL != 0 {
		if acl.Access, err = fromEntries(w.Aclcnt, w.Aclent, 0); err != nil {
			return acl, err
		}
	}
	if w.Mask&nfsacl3.NA_DFACL != 0 {
		acl.Default, err = fromEntries(w.Dfaclcnt, w.Dfaclent, nfsacl3.NA_ACL_DEFAULT)
	}
	return acl, err
}

// fromEntries converts a list that was announced to have count entries, all of them with
// flag set. The file system judges whether it is a valid list.
func fromEntries(count int32, list []nfsacl3.Aclent, flag int32) ([]vfs.ACLEntry, error) {
	if int64(count) != int64(len(list)) {
		return nil, vfs.ErrInval
	}
	const tags = vfs.ACLUserObj | vfs.ACLUser | vfs.ACLGroupObj | vfs.ACLGroup | vfs.ACLMask | vfs.ACLOther
	got := make([]vfs.ACLEntry, 0, len(list))
	for _, w := range list {
		tag := w.Type &^ flag
		if w.Type&flag != flag || tag&^int32(tags) != 0 {
			return nil, vfs.ErrInval
		}
		got = append(got, vfs.ACLEntry{Tag: vfs.ACLTag(tag), ID: w.Id, Perm: w.Perm})
	}
	return posixacl.Unmasked(got), nil
}
