package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Rmdir is procedure 13: remove a directory (RFC 1813, section 3.3.13).
func (p *Procs) Rmdir(ctx context.Context, args *nfs3.RMDIR3args, res *nfs3.RMDIR3res) (oncrpc.Reply, error) {
	return p.call(ctx, nfs3.NFSPROC3_RMDIR, args, res)
}

func (f *FS) rmdir(ctx context.Context, dir vfs.Handle, name string) (vfs.WCC, error) {
	object, err := dirop(&dir, name)
	if err != nil {
		return vfs.WCC{}, err
	}
	args, res := nfs3.RMDIR3args{Object: object}, nfs3.RMDIR3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_RMDIR, &args, &res)
	defer reply.Release()
	f.names.forget(&dir, name)
	if err != nil {
		return res.Resfail.DirWcc.VFS(), err
	}
	return res.Resok.DirWcc.VFS(), nil
}
