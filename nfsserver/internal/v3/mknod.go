package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

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
