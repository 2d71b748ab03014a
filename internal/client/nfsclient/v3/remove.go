package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Remove is one REMOVE or RMDIR (sections 3.3.12 and 3.3.13). If the name may be that of a file
// that this FS has open (openNames), a LOOKUP comes before, and if it is one of them it is
// renamed instead, so that it stays readable; the last Close removes it.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	if err := f.mayChange(ctx); err != nil {
		return vfs.WCC{}, err
	}
	if !isDir {
		if wcc, done, err := f.hideRemoved(ctx, dir, name); done {
			return wcc, err
		}
	}
	return f.remove(ctx, dir, name, isDir)
}

// remove is Remove without regard to open files. Arguments and results of RMDIR are those of
// REMOVE on the wire.
func (f *FS) remove(ctx context.Context, dir vfs.Handle, name string, isDir bool) (vfs.WCC, error) {
	object, err := dirop(&dir, name)
	if err != nil {
		return vfs.WCC{}, err
	}
	p := nfs3.NFSPROC3_REMOVE
	if isDir {
		p = nfs3.NFSPROC3_RMDIR
	}
	args, res := nfs3.REMOVE3args{Object: object}, nfs3.REMOVE3res{}
	reply, err := f.do(ctx, p, &args, &res)
	defer reply.Release()
	f.names.forget(&dir, name)
	if err != nil {
		return res.Resfail.DirWcc.VFS(), err
	}
	return res.Resok.DirWcc.VFS(), nil
}
