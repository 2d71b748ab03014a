package v3

import (
	"context"
	"math"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Commit is one COMMIT (section 3.3.21). A range longer than a count on the wire is committed to
// the end of the file.
func (o *file) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	*w = vfs.Written{}
	if err := o.use(vfs.ShareWrite); err != nil {
		return err
	}
	if n > math.MaxUint32 {
		n = 0
	}
	args, res := nfs3.COMMIT3args{File: fh(&o.h), Offset: off, Count: uint32(n)}, nfs3.COMMIT3res{}
	reply, err := o.fs.do(ctx, nfs3.NFSPROC3_COMMIT, &args, &res)
	defer reply.Release()
	if err != nil {
		w.WCC = res.Resfail.FileWcc.VFS()
		return err
	}
	ok := &res.Resok
	w.Committed, w.Verf, w.WCC = vfs.FileSync, vfs.Verifier(ok.Verf), ok.FileWcc.VFS()
	return nil
}
