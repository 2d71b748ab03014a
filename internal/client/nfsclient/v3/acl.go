package v3

import (
	"context"
	"errors"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/posixacl"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// bothLists is the mask that asks for, and sets, both lists: a server that receives one alone may
// remove the other.
const bothLists = nfsacl3.NA_ACL | nfsacl3.NA_DFACL

var _ vfs.ACLer = (*FS)(nil)

// getacl and setacl are results in the form that do takes.
type getacl struct {
	nfsacl3.GETACL3res
	status nfs3.Nfsstat3
}

func (r *getacl) DecodeXDR(d *xdr.Decoder) error {
	err := r.GETACL3res.DecodeXDR(d)
	r.status = nfs3.Nfsstat3(r.Status)
	return err
}

func (r *getacl) Stat() *nfs3.Nfsstat3 { return &r.status }

type setacl struct {
	nfsacl3.SETACL3res
	status nfs3.Nfsstat3
}

func (r *setacl) DecodeXDR(d *xdr.Decoder) error {
	err := r.SETACL3res.DecodeXDR(d)
	r.status = nfs3.Nfsstat3(r.Status)
	return err
}

func (r *setacl) Stat() *nfs3.Nfsstat3 { return &r.status }

// ACL is one GETACL of the NFS_ACL program, which some servers have at NFS's port. A server without
// it is asked once.
func (f *FS) ACL(ctx context.Context, h vfs.Handle) (acl vfs.ACL, err error) {
	if err := checkHandle(&h); err != nil {
		return acl, err
	}
	args, res := nfsacl3.GETACL3args{Fh: nfsacl3.NfsFh3{Data: h.Bytes()}, Mask: bothLists}, getacl{}
	reply, err := f.doACL(ctx, nfsacl3.ACLPROC3_GETACL, &args, &res)
	defer reply.Release()
	if err != nil {
		return acl, err
	}
	lists := &res.Resok.Acl
	if acl.Access, err = fromWire(lists.Aclent, 0); err == nil {
		acl.Default, err = fromWire(lists.Dfaclent, nfsacl3.NA_ACL_DEFAULT)
	}
	return acl, err
}

// SetACL is one SETACL. More entries than the protocol carries, and unknown rights, are
// vfs.ErrInval.
func (f *FS) SetACL(ctx context.Context, h vfs.Handle, acl vfs.ACL) error {
	if err := f.mayChange(ctx); err != nil {
		return err
	}
	if err := checkHandle(&h); err != nil {
		return err
	}
	args, res := nfsacl3.SETACL3args{Fh: nfsacl3.NfsFh3{Data: h.Bytes()}}, setacl{}
	lists := &args.Acl
	lists.Mask = bothLists
	var err error
	if lists.Aclent, err = toWire(acl.Access, 0); err != nil {
		return err
	}
	if lists.Dfaclent, err = toWire(acl.Default, nfsacl3.NA_ACL_DEFAULT); err != nil {
		return err
	}
	if max(len(lists.Aclent), len(lists.Dfaclent)) > nfsacl3.NFS_ACL_MAX_ENTRIES {
		return vfs.ErrInval
	}
	lists.Aclcnt, lists.Dfaclcnt = int32(len(lists.Aclent)), int32(len(lists.Dfaclent))
	reply, err := f.doACL(ctx, nfsacl3.ACLPROC3_SETACL, &args, &res)
	reply.Release()
	return err
}

// doACL is do for a program that the server may lack.
func (f *FS) doACL(ctx context.Context, p *xdr.Proc, args xdr.Appender, res nfs3.Result) (oncrpc.Reply, error) {
	if f.noACL.Load() {
		return oncrpc.Reply{}, vfs.ErrNotSupp
	}
	reply, err := f.do(ctx, p, args, res)
	if a, ok := errors.AsType[*oncrpc.AcceptError](err); ok && (a.Stat == oncrpc.ProgUnavail || a.Stat == oncrpc.ProgMismatch || a.Stat == oncrpc.ProcUnavail) {
		f.noACL.Store(true)
	}
	return reply, err
}

// fromWire decodes a list whose entries all have flag set. A list may have a mask only because the
// wire has no list without one. An object that got it would keep its group's rights below it.
func fromWire(list []nfsacl3.Aclent, flag int32) ([]vfs.ACLEntry, error) {
	entries := make([]vfs.ACLEntry, 0, len(list))
	for _, w := range list {
		e := vfs.ACLEntry{Tag: vfs.ACLTag(w.Type &^ flag), ID: w.Id, Perm: w.Perm}
		switch {
		case w.Type&flag != flag || !known(e.Tag) || int32(e.Tag) != w.Type&^flag:
			return nil, untrue(nfsacl3.ACLPROC3_GETACL, "an entry of type %#x", w.Type)
		case w.Perm&^7 != 0:
			return nil, untrue(nfsacl3.ACLPROC3_GETACL, "an entry of rights %#x", w.Perm)
		case e.Tag != vfs.ACLUser && e.Tag != vfs.ACLGroup:
			e.ID = 0 // some servers send the owner's
		}
		entries = append(entries, e)
	}
	return posixacl.Unmasked(entries), nil
}

func known(t vfs.ACLTag) bool {
	switch t {
	case vfs.ACLUserObj, vfs.ACLUser, vfs.ACLGroupObj, vfs.ACLGroup, vfs.ACLMask, vfs.ACLOther:
		return true
	}
	return false
}

// toWire encodes a list: in the order of the tags, which servers require, and with a mask, which
// Solaris requires.
func toWire(entries []vfs.ACLEntry, flag int32) ([]nfsacl3.Aclent, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	class, masked := uint32(0), false // the rights of the group class
	list := make([]nfsacl3.Aclent, 0, len(entries)+1)
	for _, e := range entries {
		if e.Perm&^7 != 0 {
			return nil, vfs.ErrInval
		}
		list = append(list, nfsacl3.Aclent{Type: int32(e.Tag) | flag, Id: e.ID, Perm: e.Perm})
		switch e.Tag {
		case vfs.ACLUser, vfs.ACLGroupObj, vfs.ACLGroup:
			class |= e.Perm
		case vfs.ACLMask:
			masked = true
		}
	}
	if !masked {
		list = append(list, nfsacl3.Aclent{Type: int32(vfs.ACLMask) | flag, Perm: class})
	}
	slices.SortStableFunc(list, func(a, b nfsacl3.Aclent) int { return int(a.Type) - int(b.Type) })
	return list, nil
}
