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
