package v3

import (
	"context"
	"errors"
	"math"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// read is procedure 6 (RFC 1813, section 3.3.6).
func read(ctx context.Context, q *request, a *nfs3.READ3args, r *nfs3.READ3res) error {
	h, err := a.File.VFS()
	if err != nil {
		return err
	}
	count := min(a.Count, MaxTransfer)
	if a.Offset > math.MaxUint64-uint64(count) {
		return vfs.ErrInval
	}
	data, err := q.lend(ctx, int(count))
	if err != nil {
		return err
	}
	f, err := q.reopen(ctx, h, vfs.ShareRead)
	if err != nil {
		q.post(ctx, h, &q.attr, &r.Resfail.FileAttributes)
		return err
	}
	n, eof, err := f.ReadAt(ctx, data, a.Offset, &q.attr)
	if err = errors.Join(err, closeFile(ctx, f)); err != nil {
		r.Resfail.FileAttributes.SetAttr(&q.attr)
		return err
	}
	if q.attr.Has(vfs.MaskSize) {
		// An empty read does not reach the end by itself, and still has to say
		// whether it is there.
		eof = eof || a.Offset+uint64(n) >= q.attr.Size
	}
	r.Resok.Data = data[:n]
	r.Resok.Count = uint32(n)
	r.Resok.Eof = eof
	r.Resok.FileAttributes.SetAttr(&q.attr)
	return nil
}
