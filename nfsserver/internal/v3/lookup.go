package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// lookup is procedure 3 (RFC 1813, section 3.3.3).
func lookup(ctx context.Context, q *request, a *nfs3.LOOKUP3args, r *nfs3.LOOKUP3res) error {
	dir, name, err := dirop(&a.What)
	if err != nil {
		return err
	}
	if name == "." {
		return q.lookupSelf(ctx, dir, r)
	}
	h, attr, dirAttr, err := q.fs.Lookup(ctx, dir, name)
	if err != nil {
		r.Resfail.DirAttributes.SetAttr(&dirAttr)
		return err
	}
	q.h = h
	r.Resok.Object.SetHandle(&q.h)
	q.post(ctx, h, &attr, &r.Resok.ObjAttributes)
	r.Resok.DirAttributes.SetAttr(&dirAttr)
	return nil
}

// lookupSelf answers for ".", which vfs does not know as a name and clients may
// ask for all the same (section 3.3.3). Like any name it takes a directory in
// which the caller may look.
func (q *request) lookupSelf(ctx context.Context, dir vfs.Handle, r *nfs3.LOOKUP3res) error {
	got, attr, err := q.fs.Access(ctx, dir, vfs.AccessLookup)
	if err == nil && !attr.Has(nfs3.Sent) {
		attr, err = q.fs.GetAttr(ctx, dir, vfs.MaskV3)
	}
	switch {
	case err != nil:
		return err
	case attr.Type != vfs.TypeDir:
		err = vfs.ErrNotDir
	case got&vfs.AccessLookup == 0:
		err = vfs.ErrAccess
	}
	if err != nil {
		r.Resfail.DirAttributes.SetAttr(&attr)
		return err
	}
	q.h = dir
	r.Resok.Object.SetHandle(&q.h)
	r.Resok.ObjAttributes.SetAttr(&attr)
	r.Resok.DirAttributes.SetAttr(&attr)
	return nil
}
