package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

type getattrCall struct {
	h    vfs.Handle
	args nfs3.GETATTR3args
	res  nfs3.GETATTR3res
}

// GetAttr is one GETATTR (RFC 1813, section 3.3.1), which returns all attributes that NFSv3 has.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (a vfs.Attr, err error) {
	if err := checkHandle(&h); err != nil {
		return a, err
	}
	c := f.getattrs.get()
	defer f.getattrs.put(c)
	c.h = h
	c.args.Object = fh(&c.h)
	reply, err := f.do(ctx, nfs3.NFSPROC3_GETATTR, &c.args, &c.res)
	if err == nil {
		c.res.Resok.ObjAttributes.SetVFS(&a)
	}
	reply.Release()
	return a, err
}
