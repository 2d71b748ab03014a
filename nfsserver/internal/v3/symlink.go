package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// symlink is procedure 10 (RFC 1813, section 3.3.10).
func symlink(ctx context.Context, q *request, a *nfs3.SYMLINK3args, r *nfs3.SYMLINK3res) error {
	q.create.Type = vfs.TypeSymlink
	if err := q.set(&a.Symlink.SymlinkAttributes); err != nil {
		return err
	}
	q.create.Target = string(a.Symlink.SymlinkData)
	return q.make(ctx, &a.Where, (*nfs3.CREATE3resok)(&r.Resok), &r.Resfail.DirWcc)
}
