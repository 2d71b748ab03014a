package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

func (f *FS) mkdir(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	args, res := nfs3.MKDIR3args{Where: where}, nfs3.MKDIR3res{}
	_ = args.Attributes.SetAttr(&how.Set) // the returned attributes show clamped times
	args.Attributes.Size.SetIt = false    // a directory's size cannot be set
	reply, err := f.do(ctx, nfs3.NFSPROC3_MKDIR, &args, &res)
	defer reply.Release()
	if err != nil {
		m.dir = res.Resfail.DirWcc.VFS()
		return m, err
	}
	ok := &res.Resok
	return m, m.set(nfs3.NFSPROC3_MKDIR, &ok.Obj, &ok.ObjAttributes, &ok.DirWcc)
}
