package v3

import (
	"context"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// fsstat is procedure 18 (RFC 1813, section 3.3.18).
func fsstat(ctx context.Context, q *request, a *nfs3.FSSTAT3args, r *nfs3.FSSTAT3res) error {
	h, info, err := q.info(ctx, &a.Fsroot, vfs.InfoSpace, &r.Resfail.ObjAttributes)
	if err != nil {
		return err
	}
	q.post(ctx, h, &q.attr, &r.Resok.ObjAttributes)
	r.Resok.Tbytes, r.Resok.Fbytes, r.Resok.Abytes = info.TotalBytes, info.FreeBytes, info.AvailBytes
	r.Resok.Tfiles, r.Resok.Ffiles, r.Resok.Afiles = info.TotalFiles, info.FreeFiles, info.AvailFiles
	r.Resok.Invarsec = uint32(min(max(info.Invarsec, 0)/time.Second, math.MaxUint32))
	return nil
}

// info asks for the file system of an object. A part that it does not give is
// not supported; in that case fail still gets the object's attributes.
func (q *request) info(ctx context.Context, object *nfs3.NfsFh3, want vfs.InfoMask, fail *nfs3.PostOpAttr) (vfs.Handle, vfs.Info, error) {
	h, err := object.VFS()
	if err != nil {
		return h, vfs.Info{}, err
	}
	info, err := q.fs.Info(ctx, h, want)
	if err == nil && info.Valid&want != want {
		err = vfs.ErrNotSupp
	}
	if err != nil {
		q.post(ctx, h, &q.attr, fail)
	}
	return h, info, err
}
