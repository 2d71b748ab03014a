package v3

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// create is procedure 8 (RFC 1813, section 3.3.8).
func create(ctx context.Context, q *request, a *nfs3.CREATE3args, r *nfs3.CREATE3res) error {
	q.create.Type = vfs.TypeReg
	var err error
	switch a.How.Mode {
	case nfs3.UNCHECKED:
		q.create.Mode, err = vfs.CreateUnchecked, q.set(&a.How.ObjAttributes)
	case nfs3.GUARDED:
		q.create.Mode, err = vfs.CreateGuarded, q.set(&a.How.ObjAttributes)
	case nfs3.EXCLUSIVE:
		q.create.Mode, q.create.Verf = vfs.CreateExclusive, vfs.Verifier(a.How.Verf)
	default:
		return vfs.ErrInval
	}
	if err != nil {
		return err
	}
	return q.make(ctx, &a.Where, &r.Resok, &r.Resfail.DirWcc)
}

// make creates what q.create says. The results of CREATE, MKDIR, SYMLINK and
// MKNOD are the same but for their names.
func (q *request) make(ctx context.Context, where *nfs3.Diropargs3, r *nfs3.CREATE3resok, fail *nfs3.WccData) error {
	dir, name, err := dirop(where)
	if err != nil {
		return err
	}
	h, attr, wcc, err := q.fs.Create(ctx, dir, name, &q.create)
	if err != nil {
		q.wcc(ctx, dir, &wcc, fail)
		if errors.Is(err, vfs.ErrInval) && (name == "." || name == "..") {
			// RFC 1813 has no INVAL for these procedures, and such names are
			// there indeed.
			err = vfs.ErrExist
		}
		return err
	}
	q.h = h
	r.Obj.SetHandle(&q.h)
	if !h.IsZero() {
		q.post(ctx, h, &attr, &r.ObjAttributes)
	}
	q.wcc(ctx, dir, &wcc, &r.DirWcc)
	return nil
}

// mkdir is procedure 9 (RFC 1813, section 3.3.9).
func mkdir(ctx context.Context, q *request, a *nfs3.MKDIR3args, r *nfs3.MKDIR3res) error {
	q.create.Type = vfs.TypeDir
	if err := q.set(&a.Attributes); err != nil {
		return err
	}
	return q.make(ctx, &a.Where, (*nfs3.CREATE3resok)(&r.Resok), &r.Resfail.DirWcc)
}

// symlink is procedure 10 (RFC 1813, section 3.3.10).
func symlink(ctx context.Context, q *request, a *nfs3.SYMLINK3args, r *nfs3.SYMLINK3res) error {
	q.create.Type = vfs.TypeSymlink
	if err := q.set(&a.Symlink.SymlinkAttributes); err != nil {
		return err
	}
	q.create.Target = string(a.Symlink.SymlinkData)
	return q.make(ctx, &a.Where, (*nfs3.CREATE3resok)(&r.Resok), &r.Resfail.DirWcc)
}

// mknod is procedure 11 (RFC 1813, section 3.3.11). Files, directories and
// symbolic links have procedures of their own.
func mknod(ctx context.Context, q *request, a *nfs3.MKNOD3args, r *nfs3.MKNOD3res) error {
	var err error
	switch a.What.Type {
	case nfs3.NF3CHR, nfs3.NF3BLK:
		spec := a.What.Device.Spec
		q.create.Rdev = uint64(spec.Specdata1)<<32 | uint64(spec.Specdata2)
		err = q.set(&a.What.Device.DevAttributes)
	case nfs3.NF3SOCK, nfs3.NF3FIFO:
		err = q.set(&a.What.PipeAttributes)
	default:
		return vfs.ErrBadType
	}
	if err != nil {
		return err
	}
	q.create.Type = vfs.Type(a.What.Type)
	return q.make(ctx, &a.Where, (*nfs3.CREATE3resok)(&r.Resok), &r.Resfail.DirWcc)
}
