package v3

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/client/pace"
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
	at   [manyCalls]uint8 // which of the objects each is about
}

// GetAttrs implements vfs.ManyAttrer: GETATTRs that leave in one write, as many as
// the limiter admits. Those that the server is too busy for are asked again together,
// for as long as GetAttr would; those that end in anything but attributes or an error
// of the file's, on their own, but not what the server has not answered for as long as
// that already. If it has answered none of those that were under way, the rest is not
// sent any more.
func (f *FS) GetAttrs(ctx context.Context, hs []vfs.Handle, want vfs.Mask, attrs []vfs.Attr, errs []error) {
	c := f.manies.get()
	defer f.manies.put(c)
	for all := min(len(hs), manyCalls); len(hs) > 0; {
		n, err := f.enterMany(ctx, min(len(hs), manyCalls), all)
		if err != nil {
			none(attrs[:len(hs)], errs, err)
			return
		}
		for i := range n {
			c.at[i] = uint8(i)
		}
		f.getattrMany(ctx, c, c.at[:n], hs, attrs, errs)
		unanswered, busy := 0, c.at[:0]
		for i := range n {
			if patienceEnded(c.xs[i].Err) {
				unanswered++
			} else if c.xs[i].Err != nil {
				attrs[i], errs[i] = f.GetAttr(ctx, hs[i], want)
			} else if isBusy(errs[i]) {
				busy = append(busy, uint8(i))
			}
		}
		if err := errs[n-1]; unanswered == n {
			none(attrs[n:len(hs)], errs[n:], err)
			return
		}
		f.getattrBusy(ctx, c, busy, hs, attrs, errs)
		hs, attrs, errs = hs[n:], attrs[n:], errs[n:]
	}
}

// isBusy reports whether a GETATTR was answered with NFS3ERR_JUKEBOX.
func isBusy(err error) bool {
	status, _ := vfs.StatusOf(err)
	return status == vfs.ErrBusy
}

// getattrBusy asks again for the objects at, for which the server was too busy, until
// it is no more or their time is over. It takes at for its own.
func (f *FS) getattrBusy(ctx context.Context, c *getattrsCall, at []uint8, hs []vfs.Handle, attrs []vfs.Attr, errs []error) {
	var w wait
	for len(at) > 0 && !w.over(f) {
		err := w.pause(ctx, f)
		still := at[:0]
		for rest := at; len(rest) > 0; {
			var n int
			if err == nil {
				n, err = f.enterMany(ctx, len(rest), len(rest))
			}
			if err != nil {
				for _, i := range rest {
					errs[i] = &BusyError{Proc: nfs3.NFSPROC3_GETATTR, Tries: w.tries, Err: err}
				}
				break
			}
			f.getattrMany(ctx, c, rest[:n], hs, attrs, errs)
			for _, i := range rest[:n] {
				if isBusy(errs[i]) {
					still = append(still, i)
				}
			}
			rest = rest[n:]
		}
		at = still
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

// getattrMany makes the calls about the objects at, once.
func (f *FS) getattrMany(ctx context.Context, c *getattrsCall, at []uint8, hs []vfs.Handle, attrs []vfs.Attr, errs []error) {
	n := len(at)
	for i, o := range at {
		c.args[i].Object = fh(&hs[o])
		c.xs[i] = oncrpc.Exchange{Proc: nfs3.NFSPROC3_GETATTR, Auth: f.Auth, Args: &c.args[i], Res: &c.res[i]}
	}
	f.RPC.CallMany(ctx, c.xs[:n])
	for i, o := range at {
		x, res := &c.xs[i], &c.res[i]
		errs[o], attrs[o] = nil, vfs.Attr{}
		switch {
		case x.Err != nil:
			errs[o] = f.lost(x.Proc, false, x.Err)
		case res.Status != nfs3.NFS3_OK:
			f.counts.note(x.Proc, res.Status)
			errs[o] = &StatusError{Proc: x.Proc, Status: vfs.Status(res.Status)}
		default:
			res.Resok.ObjAttributes.SetVFS(&attrs[o])
		}
		c.ends[i] = pace.End{Took: x.Reply.Took, Outcome: outcome(res, x.Err)}
		x.Reply.Release()
	}
	if f.opt.Pace != nil {
		f.opt.Pace.LeaveMany(pace.Metadata, c.ends[:n])
	}
}
