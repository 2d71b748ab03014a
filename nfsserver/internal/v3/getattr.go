package v3

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// getattr is procedure 1 (RFC 1813, section 3.3.1).
func getattr(ctx context.Context, q *request, a *nfs3.GETATTR3args, r *nfs3.GETATTR3res) error {
	h, err := a.Object.VFS()
	if err != nil {
		return err
	}
	attr, err := q.fs.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		return err
	}
	if !attr.Has(nfs3.Sent) {
		return fmt.Errorf("attributes %#x of an object are missing", nfs3.Sent&^attr.Valid)
	}
	r.Resok.ObjAttributes.SetAttr(&attr)
	return nil
}
