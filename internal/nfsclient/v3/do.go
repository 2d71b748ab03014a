package v3

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/pace"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// do makes a call, again while the server answers NFS3ERR_JUKEBOX, and returns
// an error for every status but NFS3_OK. The Reply is to be released in any
// case; what the result borrows is only there if it is NFS3_OK.
func (f *FS) do(ctx context.Context, p *xdr.Proc, args xdr.Appender, res nfs3.Result) (oncrpc.Reply, error) {
	resent := false // in any try: each is a call of its own, and may have been executed
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return oncrpc.Reply{}, uncertain(p, resent, err)
		}
		reply, err := f.try(ctx, p, args, res)
		resent = resent || reply.Resent
		if err != nil {
			reply.Release()
			return oncrpc.Reply{}, f.lost(p, resent, err)
		}
		status := *res.Stat()
		if status == nfs3.NFS3_OK {
			return reply, nil
		}
		f.counts.note(p, status)
		if status != nfs3.NFS3ERR_JUKEBOX || try >= maxBusyTries && !f.opt.Hard {
			return reply, &StatusError{Proc: p, Status: vfs.Status(status), Resent: resent && changes(p) && !settled(status)}
		}
		reply.Release()
		if err := f.pause(ctx, try); err != nil {
			return oncrpc.Reply{}, uncertain(p, resent, err)
		}
	}
}

// try makes a call once, when the limiter admits it, and tells the limiter how
// it went. Nothing is held afterwards: who waits for a busy server to recover
// does not stand in the way of others.
func (f *FS) try(ctx context.Context, p *xdr.Proc, args xdr.Appender, res nfs3.Result) (oncrpc.Reply, error) {
	limiter := f.opt.Pace
	if limiter == nil {
		return f.call(ctx, p, args, res)
	}
	class := classOf(p)
	if err := limiter.Enter(ctx, class); err != nil {
		return oncrpc.Reply{}, fmt.Errorf("nfs: %s: waiting for its turn: %w: %w", name(p), oncrpc.ErrNotSent, err)
	}
	reply, err := f.call(ctx, p, args, res)
	limiter.Leave(class, reply.Took, moved(res, err), outcome(&reply, res, err))
	return reply, err
}

// classOf is the class in which a procedure is limited: what moves a file's bytes,
// or makes them stable, apart from all that is small.
func classOf(p *xdr.Proc) pace.Class {
	switch p {
	case nfs3.NFSPROC3_READ:
		return pace.Read
	case nfs3.NFSPROC3_WRITE, nfs3.NFSPROC3_COMMIT:
		return pace.Write
	}
	return pace.Metadata
}

// moved is how many bytes of a file a call has read or written.
func moved(res nfs3.Result, err error) int {
	if err != nil || *res.Stat() != nfs3.NFS3_OK {
		return 0
	}
	switch r := res.(type) {
	case *nfs3.READ3res:
		return len(r.Resok.Data)
	case *nfs3.WRITE3res:
		return int(r.Resok.Count)
	}
	return 0
}

// outcome is what a call says about the server's load. An error that came from
// the server itself says nothing: no work was done for it.
func outcome(reply *oncrpc.Reply, res nfs3.Result, err error) pace.Outcome {
	switch {
	case errors.Is(err, oncrpc.ErrTimeout):
		return pace.Timeout
	case err != nil:
		return pace.Gone
	case *res.Stat() == nfs3.NFS3ERR_JUKEBOX:
		return pace.Busy
	case reply.Resent:
		return pace.Timeout
	}
	return pace.OK
}
