package v3

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// SetAttr is one SETATTR (section 3.3.2). A time that NFSv3 cannot carry (before 1970, after
// 2106) becomes the nearest one that it can; WCC.After shows the result.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	if err := f.mayChange(ctx); err != nil {
		return vfs.WCC{}, err
	}
	if err := checkHandle(&h); err != nil {
		return vfs.WCC{}, err
	}
	args, res := nfs3.SETATTR3args{Object: fh(&h)}, nfs3.SETATTR3res{}
	_ = args.NewAttributes.SetAttr(set) // the returned attributes show clamped times
	if guard != nil {
		exact := false
		args.Guard.Check = true
		if args.Guard.ObjCtime, exact = nfs3.Time(*guard); !exact {
			return vfs.WCC{}, vfs.ErrNotSync // no object can have that ctime
		}
	}
	reply, err := f.do(ctx, nfs3.NFSPROC3_SETATTR, &args, &res)
	defer reply.Release()
	if err != nil {
		return res.Resfail.ObjWcc.VFS(), err
	}
	return res.Resok.ObjWcc.VFS(), nil
}
