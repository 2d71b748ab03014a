package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// pathconf is procedure 20 (RFC 1813, section 3.3.20).
func pathconf(ctx context.Context, q *request, a *nfs3.PATHCONF3args, r *nfs3.PATHCONF3res) error {
	h, info, err := q.info(ctx, &a.Object, vfs.InfoNames, &r.Resfail.ObjAttributes)
	if err != nil {
		return err
	}
	q.post(ctx, h, &q.attr, &r.Resok.ObjAttributes)
	r.Resok.Linkmax = info.LinkMax
	r.Resok.NameMax = info.NameMax
	r.Resok.NoTrunc = info.NoTrunc
	r.Resok.ChownRestricted = info.ChownRestricted
	r.Resok.CaseInsensitive = info.CaseInsensitive
	r.Resok.CasePreserving = info.CasePreserving
	return nil
}
