package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// link is procedure 15 (RFC 1813, section 3.3.15).
func link(ctx context.Context, q *request, a *nfs3.LINK3args, r *nfs3.LINK3res) error {
	h, err := a.File.VFS()
	if err != nil {
		return err
	}
	dir, name, err := dirop(&a.Link)
	if err != nil {
		return err
	}
	attr, wcc, err := q.fs.Link(ctx, h, dir, name)
	if err != nil {
		q.post(ctx, h, &attr, &r.Resfail.FileAttributes)
		q.wcc(ctx, dir, &wcc, &r.Resfail.LinkdirWcc)
		return err
	}
	q.post(ctx, h, &attr, &r.Resok.FileAttributes)
	q.wcc(ctx, dir, &wcc, &r.Resok.LinkdirWcc)
	return nil
}
