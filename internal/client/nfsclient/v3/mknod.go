package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

func (f *FS) mknod(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	args, res := nfs3.MKNOD3args{Where: where}, nfs3.MKNOD3res{}
	args.What.Type = nfs3.Ftype3(how.Type)
	set := &args.What.PipeAttributes
	if how.Type == vfs.TypeBlock || how.Type == vfs.TypeChar {
		set = &args.What.Device.DevAttributes
		args.What.Device.Spec = nfs3.Specdata3{Specdata1: uint32(how.Rdev >> 32), Specdata2: uint32(how.Rdev)}
	}
	_ = set.SetAttr(&how.Set) // the returned attributes show clamped times
	set.Size.SetIt = false    // a node's size cannot be set
	reply, err := f.do(ctx, nfs3.NFSPROC3_MKNOD, &args, &res)
	defer reply.Release()
	if err != nil {
		m.dir = res.Resfail.DirWcc.VFS()
		return m, err
	}
	ok := &res.Resok
	return m, m.set(nfs3.NFSPROC3_MKNOD, &ok.Obj, &ok.ObjAttributes, &ok.DirWcc)
}
