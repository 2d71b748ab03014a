package nlm

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// request is a call about locks: the client, the file and the bytes.
type request struct {
	c      *client
	view   *peer.View
	locker vfs.Locker
	h      vfs.Handle
	lock   vfs.Lock
	span   byterange.Span
	alock  *nlm4.Nlm4Lock // borrowed from the call
	async  bool           // the answer is sent by a call to the client
}

// errStatus is an error that has a status of its own in this protocol.
type errStatus nlm4.Nlm4Stats

func (e errStatus) Error() string { return nlm4.Nlm4Stats(e).String() }

// begin finds the client and the file of a call. If q.c is set, it must be given back,
// even after an error. An unknown client is entered only if the rules of the file's
// export admit it. A known one may give up what it has, whatever the rules say by now.
// A client that no rule admits is never sent a message.
func (s *Service) begin(ctx context.Context, q *request, c *oncrpc.Call, l *nlm4.Nlm4Lock, exclusive bool) error {
	conn, ok := c.State.(*peer.Conn)
	if !ok {
		return errors.New("nlm: a connection of another kind of server")
	}
	var err error
	if q.view, err = conn.View(c.Auth); err != nil {
		return err
	}
	q.c = s.find(c, string(l.CallerName))
	if q.h, err = vfs.MakeHandle(l.Fh); err != nil {
		err = errStatus(nlm4.NLM4_STALE_FH)
	} else if q.c == nil {
		err = q.view.FS.Admits(ctx, q.h)
	}
	if q.c == nil && (err == nil || q.async && conn.Admitted()) {
		var full error
		if q.c, full = s.enter(c, string(l.CallerName)); full != nil {
			return errStatus(nlm4.NLM4_DENIED_NOLOCKS)
		}
	}
	if err != nil {
		return err
	}
	if q.locker, ok = vfs.As[vfs.Locker](q.view.FS); !ok {
		return errStatus(nlm4.NLM4_DENIED_NOLOCKS)
	}
	n := l.LLen
	if n == math.MaxUint64 {
		n = 0 // some clients mean "to the end" by it
	}
	if q.span, ok = byterange.Of(l.LOffset, n, exclusive); !ok {
		return errStatus(nlm4.NLM4_FBIG)
	}
	q.alock = l
	q.lock = vfs.Lock{Owner: ownerOf(q.c, l.Oh, l.Svid), Exclusive: exclusive, Off: q.span.First, Len: q.span.Len()}
	return nil
}

// status is err in this protocol. An error without a status is unexpected, and is logged.
func (s *Service) status(c *oncrpc.Call, err error) nlm4.Nlm4Stats {
	if err == nil {
		return nlm4.NLM4_GRANTED
	}
	if st, ok := errors.AsType[errStatus](err); ok {
		return nlm4.Nlm4Stats(st)
	}
	st, ok := vfs.StatusOf(err)
	switch st {
	case vfs.ErrLocked:
		return nlm4.NLM4_DENIED
	case vfs.ErrBusy, vfs.ErrNoSpace, vfs.ErrNotSupp:
		return nlm4.NLM4_DENIED_NOLOCKS
	case vfs.ErrStale, vfs.ErrBadHandle, vfs.ErrNoEnt:
		return nlm4.NLM4_STALE_FH
	case vfs.ErrROFS:
		return nlm4.NLM4_ROFS
	case vfs.ErrFBig:
		return nlm4.NLM4_FBIG
	}
	if !ok {
		s.o.Log.Warn("locking failed", slog.String("procedure", c.Proc.Name), slog.Any("client", c.Remote), slog.Any("error", err))
	}
	return nlm4.NLM4_FAILED
}

// binding is a procedure and what serves it.
type binding struct {
	proc    *xdr.Proc
	handler oncrpc.Handler
	once    bool
}

// bindings are the procedures that are served. Of the results that clients send, only
// those of GRANTED_MSG are, which this server calls.
func (s *Service) bindings() []binding {
	return []binding{
		{nlm4.NLMPROC4_NULL, func(_ context.Context, c *oncrpc.Call) error { return c.Reply(xdr.Void{}) }, false},
		{nlm4.NLMPROC4_TEST, answer(s, (*Service).test), false},
		{nlm4.NLMPROC4_LOCK, answer(s, (*Service).lock), true},
		{nlm4.NLMPROC4_CANCEL, answer(s, (*Service).cancel), true},
		{nlm4.NLMPROC4_UNLOCK, answer(s, (*Service).unlock), true},
		{nlm4.NLMPROC4_GRANTED, answer(s, (*Service).granted), false},
		{nlm4.NLMPROC4_TEST_MSG, message(s, (*Service).test, nlm4.NLMPROC4_TEST_RES), false},
		{nlm4.NLMPROC4_LOCK_MSG, message(s, (*Service).lock, nlm4.NLMPROC4_LOCK_RES), true},
		{nlm4.NLMPROC4_CANCEL_MSG, message(s, (*Service).cancel, nlm4.NLMPROC4_CANCEL_RES), true},
		{nlm4.NLMPROC4_UNLOCK_MSG, message(s, (*Service).unlock, nlm4.NLMPROC4_UNLOCK_RES), true},
		{nlm4.NLMPROC4_GRANTED_MSG, message(s, (*Service).granted, nlm4.NLMPROC4_GRANTED_RES), false},
		{nlm4.NLMPROC4_GRANTED_RES, s.grantedRes, false},
		{nlm4.NLMPROC4_SHARE, answer(s, (*Service).share), true},
		{nlm4.NLMPROC4_UNSHARE, answer(s, (*Service).unshare), true},
		{nlm4.NLMPROC4_NM_LOCK, answer(s, (*Service).nmLock), true},
		{nlm4.NLMPROC4_FREE_ALL, s.freeAll, false},
	}
}

// decoded is a pointer to arguments.
type decoded[A any] interface {
	*A
	xdr.Unmarshaler
}

func args[A any, PA decoded[A]](c *oncrpc.Call) (*A, error) {
	a := new(A)
	if err := PA(a).DecodeXDR(&c.Args); err != nil {
		return nil, err
	}
	return a, c.Args.Finish()
}

// procedure computes the result of a call, and leaves q.c to be given back. Its error
// becomes the call's.
type procedure[A any] func(s *Service, ctx context.Context, q *request, c *oncrpc.Call, a *A) (xdr.Appender, error)

// answer is the handler of a procedure whose result is the reply.
func answer[A any, PA decoded[A]](s *Service, do procedure[A]) oncrpc.Handler {
	return func(ctx context.Context, c *oncrpc.Call) error {
		a, err := args[A, PA](c)
		if err != nil {
			return err
		}
		var q request
		res, err := s.serve(ctx, &q, c, func() (xdr.Appender, error) { return do(s, ctx, &q, c, a) })
		if err != nil {
			return err
		}
		return c.Reply(res)
	}
}

// message is the handler of a procedure whose reply is empty: the result is sent by a call
// to the client.
func message[A any, PA decoded[A]](s *Service, do procedure[A], back *xdr.Proc) oncrpc.Handler {
	return func(ctx context.Context, c *oncrpc.Call) error {
		a, err := args[A, PA](c)
		if err != nil {
			return err
		}
		q := request{async: true}
		_, err = s.serve(ctx, &q, c, func() (xdr.Appender, error) {
			res, err := do(s, ctx, &q, c, a)
			if err == nil && q.c != nil {
				s.sendResult(q.c, back, res)
			}
			return nil, err
		})
		if err != nil {
			return err
		}
		return c.Reply(xdr.Void{})
	}
}

// serve runs a procedure, and gives its client back.
func (s *Service) serve(ctx context.Context, q *request, c *oncrpc.Call, do func() (xdr.Appender, error)) (xdr.Appender, error) {
	defer func() {
		if q.c != nil {
			s.leave(q.c)
		}
	}()
	res, err := do()
	if err != nil && ctx.Err() != nil {
		return nil, oncrpc.ErrDrop // the client does not wait for it any more
	}
	return res, err
}

// refusal returns the status of err, or err itself if it is an error of the call's
// credential, or of its end.
func (s *Service) refusal(ctx context.Context, c *oncrpc.Call, err error) (nlm4.Nlm4Stats, error) {
	if _, denied := errors.AsType[*oncrpc.AuthError](err); denied || ctx.Err() != nil {
		return 0, err
	}
	st := s.status(c, err)
	switch st {
	case nlm4.NLM4_DENIED_GRACE_PERIOD, nlm4.NLM4_DENIED_NOLOCKS:
		c.Forget() // the next try may get another answer
	case nlm4.NLM4_STALE_FH:
		c.Forget() // nothing was changed, and any client could fill the reply cache with it
	}
	return st, nil
}
