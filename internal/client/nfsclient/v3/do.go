package v3

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// do makes a call, repeats it while the server answers NFS3ERR_JUKEBOX and the patience lasts, and
// returns an error for every status other than NFS3_OK. The caller always releases the Reply. What
// the result borrows is valid only with NFS3_OK.
func (f *FS) do(ctx context.Context, p *xdr.Proc, args xdr.Appender, res nfs3.Result) (oncrpc.Reply, error) {
	return f.doWaiting(ctx, p, args, res, wait{})
}

// doWaiting is do with the caller's own wait.
func (f *FS) doWaiting(ctx context.Context, p *xdr.Proc, args xdr.Appender, res nfs3.Result, w wait) (oncrpc.Reply, error) {
	resent := false // in any try: each is a call of its own, and may have been executed
	for {
		if err := ctx.Err(); err != nil {
			return oncrpc.Reply{}, uncertain(p, resent, err)
		}
		reply, err := f.try(ctx, p, args, res)
		resent = resent || reply.Resent
		if err != nil && !refusedBriefly(err, res) {
			reply.Release()
			return oncrpc.Reply{}, f.lost(p, resent, err)
		}
		status := *res.Stat()
		if status == nfs3.NFS3_OK {
			return reply, nil
		}
		f.counts.note(p, status)
		if status != nfs3.NFS3ERR_JUKEBOX || f.opt.Plain || w.over(f) {
			return reply, &StatusError{Proc: p, Status: vfs.Status(status), Resent: resent && changes(p) && !settled(status)}
		}
		reply.Release()
		*res.Stat() = nfs3.NFS3_OK // until the next reply
		if err := w.pause(ctx, f); err != nil {
			return oncrpc.Reply{}, uncertain(p, resent, &BusyError{Proc: p, Tries: w.tries, Err: err})
		}
	}
}

// refusedBriefly reports whether the results of a call that failed with err are an error status
// without the fields that should follow it. Some servers leave the attributes out. The status
// counts all the same; res then has no attributes.
func refusedBriefly(err error, res nfs3.Result) bool {
	if !errors.Is(err, xdr.ErrShort) || *res.Stat() == nfs3.NFS3_OK {
		return false
	}
	const longest = 64 // bytes after an error status if all are zero: LINK's or RENAME's
	b := xdr.AppendInt32(make([]byte, 0, longest), int32(*res.Stat()))
	d := xdr.NewDecoder(b[:longest])
	return res.DecodeXDR(&d) == nil
}

// try makes a call once, when the limiter admits it, and reports the outcome to the limiter. The
// admission ends with the try, so a call that waits for a busy server does not hold up others.
// After a call was given up, and until the server answers one, calls hold no admission. Such a
// server has no load, and queued calls would otherwise be given up one after the other, each after
// a patience of its own. A hard call is never given up: after hardPlace without a reply, it gives
// its place to others.
func (f *FS) try(ctx context.Context, p *xdr.Proc, args xdr.Appender, res nfs3.Result) (oncrpc.Reply, error) {
	limiter := f.opt.Pace
	if limiter == nil {
		return f.RPC.Call(ctx, p, f.Auth, args, res)
	}
	class := classOf(p)
	if err := limiter.Enter(ctx, class); err != nil {
		return oncrpc.Reply{}, fmt.Errorf("nfs: %s: waiting for its turn: %w: %w", name(p), oncrpc.ErrNotSent, err)
	}
	silent := f.silent.Load()
	if silent {
		limiter.Leave(class, 0, 0, pace.Gone)
	}
	var place *time.Timer
	if f.opt.Hard && !silent {
		place = time.AfterFunc(hardPlace, func() { limiter.Leave(class, 0, 0, pace.Gone) })
	}
	reply, err := f.RPC.Call(ctx, p, f.Auth, args, res)
	switch {
	case silent && reply.Took > 0: // an answer, be it a refusal
		f.silent.Store(false)
	case patienceEnded(err):
		f.silent.Store(true)
	}
	if silent || place != nil && !place.Stop() {
		return reply, err // it has left already
	}
	limiter.Leave(class, reply.Took, moved(res, err), outcome(res, err))
	return reply, err
}

// classOf is the class in which a procedure is limited: procedures that move a file's bytes, or
// make them stable, are kept apart from small ones.
func classOf(p *xdr.Proc) pace.Class {
	switch p {
	case nfs3.NFSPROC3_READ:
		return pace.Read
	case nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_COMMIT:
		return pace.Write
	}
	return pace.Metadata
}

// moved is how many bytes a call has read or written of a file, or listed of a directory: a page
// costs more than a GETATTR.
func moved(res nfs3.Result, err error) int {
	if err != nil || *res.Stat() != nfs3.NFS3_OK {
		return 0
	}
	switch r := res.(type) {
	case *nfs3.READ3res:
		return len(r.Resok.Data)
	case *nfs3.WRITE3res:
		return int(r.Resok.Count)
	case *page:
		return len(r.list.Rest())
	}
	return 0
}

// outcome is what a call says about the server's load. An error of the server itself says nothing,
// because it did no work, and neither does a missing connection, over which nothing was sent. A
// reply to a call that was sent again counts with the time of its last try. Resending usually means
// that a connection was lost with all its calls, as at a restart; the server may be idle now. A slow
// server shows in its other replies, and in calls that time out.
func outcome(res nfs3.Result, err error) pace.Outcome {
	switch {
	case errors.Is(err, oncrpc.ErrTimeout) && !errors.Is(err, oncrpc.ErrNotSent):
		return pace.Timeout
	case err != nil:
		return pace.Gone
	case *res.Stat() == nfs3.NFS3ERR_JUKEBOX:
		return pace.Busy
	}
	return pace.OK
}
