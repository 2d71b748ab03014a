package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// mkdir is procedure 9 (RFC 1813, section 3.3.9).
func mkdir(ctx context.Context, q *request, a *nfs3.MKDIR3args, r *nfs3.MKDIR3res) error {
	q.create.Type = vfs.TypeDir
	if err := q.set(&a.Attributes); err != nil {
		return err
	}
	return q.make(ctx, &a.Where, (*nfs3.CREATE3resok)(&r.Resok), &r.Resfail.DirWcc)
}
