package v3

import (
	"context"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// fsinfo is procedure 19 (RFC 1813, section 3.3.19).
func fsinfo(ctx context.Context, q *request, a *nfs3.FSINFO3args, r *nfs3.FSINFO3res) error {
	h, info, err := q.info(ctx, &a.Fsroot, vfs.InfoLimits, &r.Resfail.ObjAttributes)
	if err != nil {
		return err
	}
	ok := &r.Resok
	q.post(ctx, h, &q.attr, &ok.ObjAttributes)
	ok.Rtmax, ok.Rtpref, ok.Rtmult = transfer(info.ReadMax, info.ReadPref, info.ReadMult)
	ok.Wtmax, ok.Wtpref, ok.Wtmult = transfer(info.WriteMax, info.WritePref, info.WriteMult)
	ok.Dtpref = preferredPage
	ok.Maxfilesize = info.MaxFileSize
	delta := min(max(info.TimeDelta, 1), math.MaxUint32*time.Second)
	ok.TimeDelta = nfs3.Nfstime3{Seconds: uint32(delta / time.Second), Nseconds: uint32(delta % time.Second)}
	ok.Properties = properties(&info)
	return nil
}

// transfer bounds the sizes that a file system wishes for. One that has no wish
// gets what the server can do.
func transfer(most, prefer, mult uint32) (uint32, uint32, uint32) {
	if most == 0 || most > MaxTransfer {
		most = MaxTransfer
	}
	if prefer == 0 || prefer > most {
		prefer = most
	}
	return most, prefer, min(max(mult, 1), prefer)
}

func properties(info *vfs.Info) (p uint32) {
	for _, x := range []struct {
		has bool
		bit uint32
	}{
		{info.HasLinks, nfs3.FSF3_LINK},
		{info.HasSymlinks, nfs3.FSF3_SYMLINK},
		{info.Homogeneous, nfs3.FSF3_HOMOGENEOUS},
		{info.CanSetTime, nfs3.FSF3_CANSETTIME},
	} {
		if x.has {
			p |= x.bit
		}
	}
	return p
}

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

// pathconf is procedure 20 (RFC 1813, section 3.3.20).
func pathconf(ctx context.Context, q *request, a *nfs3.PATHCONF3args, r *nfs3.PATHCONF3res) error {
	h, info, err := q.info(ctx, &a.Object, vfs.InfoNames, &r.Resfail.ObjAttributes)
	if err != nil {
		return err
	}
	q.post(ctx, h, &q.attr, &r.Resok.ObjAttributes)
	r.Resok.Linkmax = info.LinkMax
	r.Resok.NameMax = info.NameMax
	r.Resok.NoTrunc = info.NoTrunc
	r.Resok.ChownRestricted = info.ChownRestricted
	r.Resok.CaseInsensitive = info.CaseInsensitive
	r.Resok.CasePreserving = info.CasePreserving
	return nil
}
