package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// readlink is procedure 5 (RFC 1813, section 3.3.5).
func readlink(ctx context.Context, q *request, a *nfs3.READLINK3args, r *nfs3.READLINK3res) error {
	h, err := a.Symlink.VFS()
	if err != nil {
		return err
	}
	target, attr, err := q.fs.Readlink(ctx, h)
	if err != nil {
		r.Resfail.SymlinkAttributes.SetAttr(&attr)
		return err
	}
	r.Resok.Data = []byte(target)
	r.Resok.SymlinkAttributes.SetAttr(&attr)
	return nil
}
