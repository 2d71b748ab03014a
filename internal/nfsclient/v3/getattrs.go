package v3

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/pace"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// manyCalls bounds how many GETATTRs of one GetAttrs are under way at once. The
// rest waits for all of them.
const manyCalls = 64

// getattrsCall is the memory of manyCalls GETATTRs.
type getattrsCall struct {
	args [manyCalls]nfs3.GETATTR3args
	res  [manyCalls]nfs3.GETATTR3res
	xs   [manyCalls]oncrpc.Exchange
	ends [manyCalls]pace.End
}

// GetAttrs implements vfs.ManyAttrer: GETATTRs that leave in one write, as many as
// the limiter admits. Those that end in anything but attributes or an error of the
// file's are asked again on their own, with all the patience of GetAttr; but not what
// the server has not answered for as long as that already. If it has answered none of
// those that were under way, the rest is not sent any more.
func (f *FS) GetAttrs(ctx context.Context, hs []vfs.Handle, want vfs.Mask, attrs []vfs.Attr, errs []error) {
	c := f.manies.get()
	defer f.manies.put(c)
	for all := min(len(hs), manyCalls); len(hs) > 0; {
		n, err := f.enterMany(ctx, min(len(hs), manyCalls), all)
		if err != nil {
			none(attrs[:len(hs)], errs, err)
			return
		}
		f.getattrMany(ctx, c, hs[:n], attrs, errs)
		unanswered := 0
		for i := range n {
			if patienceEnded(c.xs[i].Err) {
				unanswered++
				continue
			}
			if st, _ := vfs.StatusOf(errs[i]); st == vfs.ErrBusy || c.xs[i].Err != nil {
				attrs[i], errs[i] = f.GetAttr(ctx, hs[i], want)
			}
		}
		if err := errs[n-1]; unanswered == n {
			none(attrs[n:len(hs)], errs[n:], err)
			return
		}
		hs, attrs, errs = hs[n:], attrs[n:], errs[n:]
	}
}

// none makes err what became of all attrs.
func none(attrs []vfs.Attr, errs []error, err error) {
	for i := range attrs {
		attrs[i], errs[i] = vfs.Attr{}, err
	}
}

// enterMany has the limiter admit up to n calls, of all that could be under way at
// once.
func (f *FS) enterMany(ctx context.Context, n, all int) (int, error) {
	if f.opt.Pace == nil {
		return n, ctx.Err()
	}
	n, err := f.opt.Pace.EnterMany(ctx, pace.Metadata, n, all)
	if err != nil {
		return 0, fmt.Errorf("nfs: GETATTR: waiting for its turn: %w: %w", oncrpc.ErrNotSent, err)
	}
	return n, nil
}

// getattrMany makes the calls, once.
func (f *FS) getattrMany(ctx context.Context, c *getattrsCall, hs []vfs.Handle, attrs []vfs.Attr, errs []error) {
	for i := range hs {
		c.args[i].Object = fh(&hs[i])
		c.xs[i] = oncrpc.Exchange{Proc: nfs3.NFSPROC3_GETATTR, Auth: f.Auth, Args: &c.args[i], Res: &c.res[i]}
	}
	f.RPC.CallMany(ctx, c.xs[:len(hs)])
	for i := range hs {
		x, res := &c.xs[i], &c.res[i]
		errs[i], attrs[i] = nil, vfs.Attr{}
		switch {
		case x.Err != nil:
			errs[i] = f.lost(x.Proc, false, x.Err)
		case res.Status != nfs3.NFS3_OK:
			f.counts.note(x.Proc, res.Status)
			errs[i] = &StatusError{Proc: x.Proc, Status: vfs.Status(res.Status)}
		default:
			res.Resok.ObjAttributes.SetVFS(&attrs[i])
		}
		c.ends[i] = pace.End{Took: x.Reply.Took, Outcome: outcome(res, x.Err)}
		x.Reply.Release()
	}
	if f.opt.Pace != nil {
		f.opt.Pace.LeaveMany(pace.Metadata, c.ends[:len(hs)])
	}
}
