package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// rename is procedure 14 (RFC 1813, section 3.3.14).
func rename(ctx context.Context, q *request, a *nfs3.RENAME3args, r *nfs3.RENAME3res) error {
	fromDir, fromName, err := dirop(&a.From)
	if err != nil {
		return err
	}
	toDir, toName, err := dirop(&a.To)
	if err != nil {
		return err
	}
	from, to, err := q.fs.Rename(ctx, fromDir, fromName, toDir, toName)
	if err != nil {
		q.wcc(ctx, fromDir, &from, &r.Resfail.FromdirWcc)
		q.wcc(ctx, toDir, &to, &r.Resfail.TodirWcc)
		return err
	}
	q.wcc(ctx, fromDir, &from, &r.Resok.FromdirWcc)
	q.wcc(ctx, toDir, &to, &r.Resok.TodirWcc)
	return nil
}
