package v3

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Link is one LINK (section 3.3.15). If the call had to be repeated and the name exists, a LOOKUP, and
// perhaps a GETATTR, find out whether it is the wanted link.
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	if err := f.mayChange(ctx); err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	if err := checkHandle(&h); err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	link, err := dirop(&dir, name)
	if err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	args, res := nfs3.LINK3args{File: fh(&h), Link: link}, nfs3.LINK3res{}
	f.open.linked(h)
	reply, err := f.do(ctx, nfs3.NFSPROC3_LINK, &args, &res)
	defer reply.Release()
	f.open.linked(h)
	if err != nil {
		attr := res.Resfail.FileAttributes.VFS()
		if f.linked(ctx, h, &attr, dir, name, err) {
			err = nil
		}
		return attr, res.Resfail.LinkdirWcc.VFS(), err
	}
	f.names.note(&dir, name, &h)
	return res.Resok.FileAttributes.VFS(), res.Resok.LinkdirWcc.VFS(), nil
}

// linked reports whether the LINK that failed with err has succeeded after all: it was sent twice, and
// the name leads to h. A link from before looks the same, and is what was wanted. A caller that takes
// a lock by linking a file of its own gets the right answer. attr is what is known of h.
func (f *FS) linked(ctx context.Context, h vfs.Handle, attr *vfs.Attr, dir vfs.Handle, name string, err error) bool {
	s, ok := errors.AsType[*StatusError](err)
	if !ok || !s.Resent || (s.Status != vfs.ErrExist && s.Status != vfs.ErrMLink) {
		return false
	}
	found, a, _, err := f.Lookup(ctx, dir, name)
	if err != nil || found == h {
		return err == nil
	}
	// Two handles may be one object's (RFC 1813, section 2.6); compare its file id.
	const identity = vfs.MaskFSID | vfs.MaskFileID
	if !attr.Has(identity) {
		if *attr, err = f.GetAttr(ctx, h, identity); err != nil {
			return false
		}
	}
	return a.Has(identity) && attr.Has(identity) && a.FSID == attr.FSID && a.FileID == attr.FileID
}
