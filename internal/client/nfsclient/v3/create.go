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

// make calls one of the four procedures. Their results are the same on the wire.
func (f *FS) make(ctx context.Context, p *xdr.Proc, args xdr.Appender) (m made, err error) {
	var res nfs3.CREATE3res
	reply, err := f.do(ctx, p, args, &res)
	defer reply.Release()
	if err != nil {
		m.dir = res.Resfail.DirWcc.VFS()
		return m, err
	}
	ok := &res.Resok
	m.attr, m.dir = ok.ObjAttributes.VFS(), ok.DirWcc.VFS()
	if ok.Obj.HandleFollows {
		m.h, err = handleOf(p, &ok.Obj.Handle)
	}
	return m, err
}

func (f *FS) create(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	args := nfs3.CREATE3args{Where: where}
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
	m, err = f.make(ctx, nfs3.NFSPROC3_CREATE, &args)
	return m, decided(err, how.Mode)
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

func (f *FS) mkdir(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	args := nfs3.MKDIR3args{Where: where}
	_ = args.Attributes.SetAttr(&how.Set) // the returned attributes show clamped times
	args.Attributes.Size.SetIt = false    // a directory's size cannot be set
	return f.make(ctx, nfs3.NFSPROC3_MKDIR, &args)
}

// defaultLinkMode is a link's mode if the caller sets none. It has no meaning, but some servers
// refuse a SYMLINK without one.
const defaultLinkMode = 0o777

func (f *FS) symlink(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	switch {
	case how.Target == "":
		return m, vfs.ErrInval
	case len(how.Target) > vfs.MaxPath:
		return m, vfs.ErrNameTooLong
	}
	args := nfs3.SYMLINK3args{Where: where}
	args.Symlink.SymlinkData = []byte(how.Target)
	set := &args.Symlink.SymlinkAttributes
	_ = set.SetAttr(&how.Set) // the returned attributes show clamped times
	set.Size.SetIt = false    // the size is the target's length
	if !set.Mode.SetIt {
		set.Mode.SetIt, set.Mode.Mode = true, defaultLinkMode
	}
	return f.make(ctx, nfs3.NFSPROC3_SYMLINK, &args)
}

func (f *FS) mknod(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	args := nfs3.MKNOD3args{Where: where}
	args.What.Type = nfs3.Ftype3(how.Type)
	set := &args.What.PipeAttributes
	if how.Type == vfs.TypeBlock || how.Type == vfs.TypeChar {
		set = &args.What.Device.DevAttributes
		args.What.Device.Spec = nfs3.Specdata3{Specdata1: uint32(how.Rdev >> 32), Specdata2: uint32(how.Rdev)}
	}
	_ = set.SetAttr(&how.Set) // the returned attributes show clamped times
	set.Size.SetIt = false    // a node's size cannot be set
	return f.make(ctx, nfs3.NFSPROC3_MKNOD, &args)
}
