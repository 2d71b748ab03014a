package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

func (f *FS) pathconf(ctx context.Context, h *vfs.Handle, info *vfs.Info) error {
	args, res := nfs3.PATHCONF3args{Object: fh(h)}, nfs3.PATHCONF3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_PATHCONF, &args, &res)
	defer reply.Release()
	if err != nil {
		return err
	}
	ok := &res.Resok
	info.Valid |= vfs.InfoNames
	info.LinkMax, info.NameMax = ok.Linkmax, ok.NameMax
	info.NoTrunc, info.ChownRestricted = ok.NoTrunc, ok.ChownRestricted
	info.CaseInsensitive, info.CasePreserving = ok.CaseInsensitive, ok.CasePreserving
	return nil
}
