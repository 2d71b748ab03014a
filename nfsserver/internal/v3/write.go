package v3

import (
	"context"
	"errors"
	"math"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// write is procedure 7 (RFC 1813, section 3.3.7).
func write(ctx context.Context, q *request, a *nfs3.WRITE3args, r *nfs3.WRITE3res) error {
	h, err := a.File.VFS()
	if err != nil {
		return err
	}
	if err := q.writeAt(ctx, h, a, &r.Resok); err != nil {
		q.wcc(ctx, h, &q.written.WCC, &r.Resfail.FileWcc)
		return err
	}
	q.wcc(ctx, h, &q.written.WCC, &r.Resok.FileWcc)
	r.Resok.Committed = nfs3.StableHow(q.written.Committed)
	r.Resok.Verf = nfs3.Writeverf3(q.written.Verf)
	return nil
}

func (q *request) writeAt(ctx context.Context, h vfs.Handle, a *nfs3.WRITE3args, r *nfs3.WRITE3resok) error {
	switch {
	case uint64(a.Count) != uint64(len(a.Data)):
		return vfs.ErrInval
	case a.Stable < nfs3.UNSTABLE || a.Stable > nfs3.FILE_SYNC:
		return vfs.ErrInval
	case a.Offset > math.MaxUint64-uint64(a.Count):
		return vfs.ErrFBig
	}
	f, err := q.reopen(ctx, h, vfs.ShareWrite)
	if err != nil {
		return err
	}
	data := a.Data[:min(len(a.Data), MaxTransfer)]
	n, err := f.WriteAt(ctx, data, a.Offset, vfs.Stability(a.Stable), &q.written)
	r.Count = uint32(n)
	return errors.Join(err, closeFile(ctx, f))
}
