package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

type lookupCall struct {
	dir  vfs.Handle
	name [vfs.MaxName]byte
	args nfs3.LOOKUP3args
	res  nfs3.LOOKUP3res
}

// Lookup is one LOOKUP (section 3.3.3). ".." of the root, which the server might follow out of it, is
// the root and costs a GETATTR. A missing name is vfs.ErrNoEnt itself, without context, because it is
// a frequent answer.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, attr, dirAttr vfs.Attr, err error) {
	if err := checkHandle(&dir); err != nil {
		return h, attr, dirAttr, err
	}
	if name == ".." && dir == f.root {
		h, attr, err = f.Root(ctx)
		return h, attr, attr, err
	}
	if name != ".." {
		if err := vfs.CheckName(name); err != nil {
			return h, attr, dirAttr, err
		}
	}
	c := f.lookups.get()
	defer f.lookups.put(c)
	c.dir = dir
	c.args.What = nfs3.Diropargs3{Dir: fh(&c.dir), Name: append(c.name[:0], name...)}
	reply, err := f.do(ctx, nfs3.NFSPROC3_LOOKUP, &c.args, &c.res)
	defer reply.Release()
	if err != nil {
		if c.res.Status == nfs3.NFS3ERR_NOENT {
			f.names.forget(&dir, name)
			err = vfs.ErrNoEnt
		}
		return h, attr, c.res.Resfail.DirAttributes.VFS(), err
	}
	ok := &c.res.Resok
	if h, err = handleOf(nfs3.NFSPROC3_LOOKUP, &ok.Object); err == nil {
		f.names.note(&dir, name, &h)
	}
	return h, ok.ObjAttributes.VFS(), ok.DirAttributes.VFS(), err
}
