package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// defaultLinkMode is a link's mode if the caller sets none. It has no meaning, but some servers
// refuse a SYMLINK without one.
const defaultLinkMode = 0o777

func (f *FS) symlink(ctx context.Context, where nfs3.Diropargs3, how *vfs.CreateHow) (m made, err error) {
	switch {
	case how.Target == "":
		return m, vfs.ErrInval
	case len(how.Target) > vfs.MaxPath:
		return m, vfs.ErrNameTooLong
	}
	args, res := nfs3.SYMLINK3args{Where: where}, nfs3.SYMLINK3res{}
	args.Symlink.SymlinkData = []byte(how.Target)
	set := &args.Symlink.SymlinkAttributes
	_ = set.SetAttr(&how.Set) // the returned attributes show clamped times
	set.Size.SetIt = false    // the size is the target's length
	if !set.Mode.SetIt {
		set.Mode.SetIt, set.Mode.Mode = true, defaultLinkMode
	}
	reply, err := f.do(ctx, nfs3.NFSPROC3_SYMLINK, &args, &res)
	defer reply.Release()
	if err != nil {
		m.dir = res.Resfail.DirWcc.VFS()
		return m, err
	}
	ok := &res.Resok
	return m, m.set(nfs3.NFSPROC3_SYMLINK, &ok.Obj, &ok.ObjAttributes, &ok.DirWcc)
}
