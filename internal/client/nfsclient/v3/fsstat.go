package v3

import (
	"context"
	"time"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

func (f *FS) fsstat(ctx context.Context, h *vfs.Handle, info *vfs.Info) error {
	args, res := nfs3.FSSTAT3args{Fsroot: fh(h)}, nfs3.FSSTAT3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_FSSTAT, &args, &res)
	defer reply.Release()
	if err != nil {
		return err
	}
	ok := &res.Resok
	info.Valid |= vfs.InfoSpace
	info.TotalBytes, info.FreeBytes, info.AvailBytes = ok.Tbytes, ok.Fbytes, ok.Abytes
	info.TotalFiles, info.FreeFiles, info.AvailFiles = ok.Tfiles, ok.Ffiles, ok.Afiles
	info.Invarsec = time.Duration(ok.Invarsec) * time.Second
	return nil
}
