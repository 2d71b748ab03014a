package v3

import (
	"context"
	"io"
	"math"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

type writeCall struct {
	args nfs3.WRITE3args
	res  nfs3.WRITE3res
}

// WriteAt is one WRITE (section 3.3.7), straight from p.
func (o *file) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (n int, err error) {
	*w = vfs.Written{}
	if err := o.use(vfs.ShareWrite); err != nil {
		return 0, err
	}
	if err := o.fs.mayChange(ctx); err != nil {
		return 0, err
	}
	if off > math.MaxUint64-uint64(len(p)) {
		return 0, vfs.ErrFBig
	}
	limits, err := o.fs.fsinfo(ctx)
	if err != nil {
		return 0, err
	}
	if p = p[:min(len(p), int(limits.WriteMax))]; len(p) == 0 {
		return 0, nil
	}
	c := o.fs.writes.get()
	defer o.fs.writes.put(c)
	c.args = nfs3.WRITE3args{
		File:   fh(&o.h),
		Offset: off,
		Count:  uint32(len(p)),
		Stable: nfs3.StableHow(how),
		Data:   p,
	}
	reply, err := o.fs.do(ctx, nfs3.NFSPROC3_WRITE, &c.args, &c.res)
	defer reply.Release()
	if err != nil {
		w.WCC = c.res.Resfail.FileWcc.VFS()
		return 0, err
	}
	return checkWrite(&c.res.Resok, len(p), how, w)
}

func checkWrite(ok *nfs3.WRITE3resok, asked int, how vfs.Stability, w *vfs.Written) (n int, err error) {
	switch {
	case uint64(ok.Count) > uint64(asked):
		err = untrue(nfs3.NFSPROC3_WRITE, "%d bytes written of %d", ok.Count, asked)
	case ok.Count == 0:
		err = &ReplyError{Proc: nfs3.NFSPROC3_WRITE, Err: io.ErrShortWrite}
	case ok.Committed < nfs3.StableHow(how) || ok.Committed > nfs3.FILE_SYNC:
		err = untrue(nfs3.NFSPROC3_WRITE, "bytes are %v, and %v was asked for", ok.Committed, nfs3.StableHow(how))
	}
	if err != nil {
		return 0, &unknown{err}
	}
	w.Committed, w.Verf, w.WCC = vfs.Stability(ok.Committed), vfs.Verifier(ok.Verf), ok.FileWcc.VFS()
	return int(ok.Count), nil
}
