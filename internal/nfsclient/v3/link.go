package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Link is procedure 15: a further name (RFC 1813, section 3.3.15).
func (p *Procs) Link(ctx context.Context, args *nfs3.LINK3args, res *nfs3.LINK3res) (oncrpc.Reply, error) {
	return p.call(ctx, nfs3.NFSPROC3_LINK, args, res)
}

// Link is one LINK.
func (f *FS) Link(ctx context.Context, h, dir vfs.Handle, name string) (vfs.Attr, vfs.WCC, error) {
	if err := f.mayChange(ctx); err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	if err := checkHandle(&h); err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	link, err := dirop(&dir, name)
	if err != nil {
		return vfs.Attr{}, vfs.WCC{}, err
	}
	args, res := nfs3.LINK3args{File: fh(&h), Link: link}, nfs3.LINK3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_LINK, &args, &res)
	defer reply.Release()
	if err != nil {
		return res.Resfail.FileAttributes.VFS(), res.Resfail.LinkdirWcc.VFS(), err
	}
	return res.Resok.FileAttributes.VFS(), res.Resok.LinkdirWcc.VFS(), nil
}
