package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

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
