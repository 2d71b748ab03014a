package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

type accessCall struct {
	h    vfs.Handle
	args nfs3.ACCESS3args
	res  nfs3.ACCESS3res
}

// Access is one ACCESS (section 3.3.4). Rights that were not asked for are removed from the answer.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	if err := checkHandle(&h); err != nil {
		return 0, vfs.Attr{}, err
	}
	c := f.accesses.get()
	defer f.accesses.put(c)
	c.h = h
	c.args = nfs3.ACCESS3args{Object: fh(&c.h), Access: uint32(want)}
	reply, err := f.do(ctx, nfs3.NFSPROC3_ACCESS, &c.args, &c.res)
	defer reply.Release()
	if err != nil {
		return 0, c.res.Resfail.ObjAttributes.VFS(), err
	}
	ok := &c.res.Resok
	return vfs.Access(ok.Access) & want, ok.ObjAttributes.VFS(), nil
}
