package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Readlink is one READLINK (section 3.3.5). A target longer than vfs.MaxPath is a ReplyError.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	if err := checkHandle(&h); err != nil {
		return "", vfs.Attr{}, err
	}
	args, res := nfs3.READLINK3args{Symlink: fh(&h)}, nfs3.READLINK3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_READLINK, &args, &res)
	defer reply.Release()
	if err != nil {
		return "", res.Resfail.SymlinkAttributes.VFS(), err
	}
	ok := &res.Resok
	if len(ok.Data) > vfs.MaxPath {
		return "", vfs.Attr{}, untrue(nfs3.NFSPROC3_READLINK, "a target of %d bytes", len(ok.Data))
	}
	return string(ok.Data), ok.SymlinkAttributes.VFS(), nil
}
