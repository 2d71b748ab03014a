package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// rmdir is procedure 13 (RFC 1813, section 3.3.13).
func rmdir(ctx context.Context, q *request, a *nfs3.RMDIR3args, r *nfs3.RMDIR3res) error {
	return q.take(ctx, &a.Object, true, &r.Resok.DirWcc, &r.Resfail.DirWcc)
}
