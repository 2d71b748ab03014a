package v3

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Create is one CREATE, MKDIR, SYMLINK or MKNOD, by the type of the new object (sections 3.3.8 to
// 3.3.11). If the server does not send the object's handle, a LOOKUP follows.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (h vfs.Handle, attr vfs.Attr, wcc vfs.WCC, err error) {
	if err := f.mayChange(ctx); err != nil {
		return h, attr, wcc, err
	}
	where, err := dirop(&dir, name)
	if err != nil {
		return h, attr, wcc, err
	}
	if how.Type != vfs.TypeReg && how.Mode != vfs.CreateGuarded {
		return h, attr, wcc, vfs.ErrInval
	}
	var m made
	switch how.Type {
	case vfs.TypeReg:
		m, err = f.create(ctx, where, how)
	case vfs.TypeDir:
		m, err = f.mkdir(ctx, where, how)
	case vfs.TypeSymlink:
		m, err = f.symlink(ctx, where, how)
	case vfs.TypeBlock, vfs.TypeChar, vfs.TypeSocket, vfs.TypeFIFO:
		m, err = f.mknod(ctx, where, how)
	default:
		err = vfs.ErrBadType
	}
	if err == nil && m.h.IsZero() {
		m.h, m.attr, _, err = f.Lookup(ctx, dir, name)
	}
	if err == nil {
		f.names.note(&dir, name, &m.h)
	}
	return m.h, m.attr, m.dir, err
}

// made is the result of creating an object.
type made struct {
	h    vfs.Handle // zero if it was not sent
	attr vfs.Attr
	dir  vfs.WCC
}

// set takes the fields that all four procedures return.
func (m *made) set(p *xdr.Proc, obj *nfs3.PostOpFh3, attr *nfs3.PostOpAttr, dir *nfs3.WccData) (err error) {
	m.attr, m.dir = attr.VFS(), dir.VFS()
	if obj.HandleFollows {
		m.h, err = handleOf(p, &obj.Handle)
	}
	return err
}

func (f *FS) create(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	args, res := nfs3.CREATE3args{Where: where}, nfs3.CREATE3res{}
	switch how.Mode {
	case vfs.CreateGuarded:
		args.How.Mode = nfs3.GUARDED
	case vfs.CreateUnchecked:
		args.How.Mode = nfs3.UNCHECKED
	case vfs.CreateExclusive:
		args.How.Mode = nfs3.EXCLUSIVE
		args.How.Verf = nfs3.Createverf3(how.Verf)
	default:
		return m, vfs.ErrInval
	}
	_ = args.How.ObjAttributes.SetAttr(&how.Set) // the returned attributes show clamped times
	reply, err := f.do(ctx, nfs3.NFSPROC3_CREATE, &args, &res)
	defer reply.Release()
	if err != nil {
		m.dir = res.Resfail.DirWcc.VFS()
		return m, decided(err, how.Mode)
	}
	ok := &res.Resok
	return m, m.set(nfs3.NFSPROC3_CREATE, &ok.Obj, &ok.ObjAttributes, &ok.DirWcc)
}

// decided returns err without the doubt about its outcome if the verifier of an exclusive CREATE
// settles it: a server that had made the file would have recognised its verifier.
func decided(err error, mode vfs.CreateMode) error {
	s, ok := errors.AsType[*StatusError](err)
	if ok && mode == vfs.CreateExclusive && s.Status == vfs.ErrExist {
		s.Resent = false
	}
	return err
}
