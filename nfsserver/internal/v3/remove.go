package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// remove is procedure 12 (RFC 1813, section 3.3.12).
func remove(ctx context.Context, q *request, a *nfs3.REMOVE3args, r *nfs3.REMOVE3res) error {
	return q.take(ctx, &a.Object, false, &r.Resok.DirWcc, &r.Resfail.DirWcc)
}

// take removes a name and says what became of its directory, in ok or in fail.
func (q *request) take(ctx context.Context, object *nfs3.Diropargs3, isDir bool, ok, fail *nfs3.WccData) error {
	dir, name, err := dirop(object)
	if err != nil {
		return err
	}
	wcc, err := q.fs.Remove(ctx, dir, name, isDir)
	if err != nil {
		ok = fail
	}
	q.wcc(ctx, dir, &wcc, ok)
	return err
}

// rmdir is procedure 13 (RFC 1813, section 3.3.13).
func rmdir(ctx context.Context, q *request, a *nfs3.RMDIR3args, r *nfs3.RMDIR3res) error {
	return q.take(ctx, &a.Object, true, &r.Resok.DirWcc, &r.Resfail.DirWcc)
}
