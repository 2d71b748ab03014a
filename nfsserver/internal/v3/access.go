package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// accessBits are the rights that the protocol knows.
const accessBits = vfs.AccessRead | vfs.AccessLookup | vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete |
	vfs.AccessExecute

// access is procedure 4 (RFC 1813, section 3.3.4). Bits that the RFC does not
// name are not granted.
func access(ctx context.Context, q *request, a *nfs3.ACCESS3args, r *nfs3.ACCESS3res) error {
	h, err := a.Object.VFS()
	if err != nil {
		return err
	}
	want := vfs.Access(a.Access) & accessBits
	got, attr, err := q.fs.Access(ctx, h, want)
	if err != nil {
		r.Resfail.ObjAttributes.SetAttr(&attr)
		return err
	}
	r.Resok.Access = uint32(got & want)
	q.post(ctx, h, &attr, &r.Resok.ObjAttributes)
	return nil
}
