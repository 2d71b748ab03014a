package v3

import (
	"context"
	"errors"
	"math"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// commit is procedure 21 (RFC 1813, section 3.3.21).
func commit(ctx context.Context, q *request, a *nfs3.COMMIT3args, r *nfs3.COMMIT3res) error {
	h, err := a.File.VFS()
	if err != nil {
		return err
	}
	if err := q.commit(ctx, h, a); err != nil {
		q.wcc(ctx, h, &q.written.WCC, &r.Resfail.FileWcc)
		return err
	}
	q.wcc(ctx, h, &q.written.WCC, &r.Resok.FileWcc)
	r.Resok.Verf = nfs3.Writeverf3(q.written.Verf)
	return nil
}

func (q *request) commit(ctx context.Context, h vfs.Handle, a *nfs3.COMMIT3args) error {
	if a.Offset > math.MaxUint64-uint64(a.Count) {
		return vfs.ErrInval
	}
	f, err := q.reopen(ctx, h, vfs.ShareWrite)
	if err != nil {
		return err
	}
	return errors.Join(f.Commit(ctx, a.Offset, uint64(a.Count), &q.written), closeFile(ctx, f))
}
