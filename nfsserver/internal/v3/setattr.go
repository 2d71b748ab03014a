package v3

import (
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// setattr is procedure 2 (RFC 1813, section 3.3.2).
func setattr(ctx context.Context, q *request, a *nfs3.SETATTR3args, r *nfs3.SETATTR3res) error {
	h, err := a.Object.VFS()
	if err != nil {
		return err
	}
	if err := q.set(&a.NewAttributes); err != nil {
		q.post(ctx, h, &q.attr, &r.Resfail.ObjWcc.After)
		return err
	}
	var guard *time.Time
	if a.Guard.Check {
		ctime := a.Guard.ObjCtime.Time()
		guard = &ctime
	}
	wcc, err := q.setAttr(ctx, h, &q.create.Set, guard)
	if err != nil {
		q.wcc(ctx, h, &wcc, &r.Resfail.ObjWcc)
		return err
	}
	q.wcc(ctx, h, &wcc, &r.Resok.ObjWcc)
	return nil
}

// set takes over what a caller wants to set, here and where objects are made.
func (q *request) set(s *nfs3.Sattr3) error {
	q.create.Set = s.VFS()
	return s.Check()
}

func (q *request) setAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	wcc, err := q.fs.SetAttr(ctx, h, set, guard)
	if errors.Is(err, vfs.ErrAccess) && q.mayResize(ctx, h, set) {
		return q.fs.As(nil).SetAttr(ctx, h, set, guard)
	}
	return wcc, err
}
