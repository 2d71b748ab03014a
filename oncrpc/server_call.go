package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// Call is one call at the server. It, and everything borrowed from it, is the
// handler's until the handler returns.
type Call struct {
	XID    uint32
	Proc   *xdr.Proc
	Auth   Auth        // the credential, borrowed
	Verf   Auth        // the verifier, borrowed
	Args   xdr.Decoder // the arguments
	Remote net.Addr
	Local  net.Addr
	State  any // of the connection, from NewConn

	sc        *serverConn
	rec       *bufpool.Buffer // the request
	allowance allowance
	handler   Handler
	hint      *atomic.Int32 // of the procedure; nil: it has none
	reply     answered
}

func (s *Server) newCall(sc *serverConn) *Call {
	c, _ := s.calls.Get().(*Call)
	if c == nil {
		c = &Call{}
	}
	c.sc, c.Remote, c.Local, c.State = sc, sc.remote, sc.local, sc.state
	return c
}

// free gives back the request and what it held.
func (c *Call) free() {
	s := c.sc.s
	c.rec.Release()
	s.budget.put(&c.allowance)
	*c = Call{}
	s.calls.Put(c)
}

// start looks at the head of a request and has it answered. An error means that
// the connection cannot go on; c is used up in any case.
func (sc *serverConn) start(c *Call) error {
	s := sc.s
	s.stats.calls.Add(1)
	c.Args.Reset(c.rec.B)
	var h callHead
	err := h.decode(&c.Args)
	if err != nil && !isDenial(err) {
		c.free()
		return err
	}
	c.XID, c.Auth, c.Verf = h.xid, h.cred, h.verf
	if err == nil && h.cred.Flavor == AuthTLS {
		return sc.startTLS(c, h.proc)
	}
	if err == nil {
		err = c.bind(h.prog, h.vers, h.proc)
	}
	sc.begun()
	if err != nil || c.handler == nil {
		c.conclude(err)
		return nil
	}
	go c.run()
	return nil
}

// bind finds the procedure's handler. Procedure 0 needs none.
func (c *Call) bind(prog, vers, proc uint32) error {
	svc, i, err := c.sc.s.find(prog, vers, proc)
	if err != nil {
		return err
	}
	if i >= 0 {
		c.Proc, c.hint = &svc.Program.Procs[i], &svc.hints[i]
	}
	if i >= 0 && i < len(svc.Handlers) {
		c.handler = svc.Handlers[i]
	}
	if c.handler == nil && proc != 0 {
		return &AcceptError{Stat: ProcUnavail}
	}
	return nil
}

// run is the goroutine of one call. A handler may end it (runtime.Goexit), as
// one does whose thread has become unusable.
func (c *Call) run() {
	sc, err := c.sc, errExited
	defer func() {
		c.conclude(err)
		sc.flush()
	}()
	err = c.handle(sc.ctx)
}

// handle runs the handler; a panic is an error like others.
func (c *Call) handle(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.sc.s.stats.panics.Add(1)
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.handler(ctx, c)
}

// conclude turns what the handler has returned into the reply, frees the call
// and puts the reply in the queue.
func (c *Call) conclude(err error) {
	sc := c.sc
	switch {
	case errors.Is(err, ErrDrop):
		sc.s.stats.dropped.Add(1)
		c.reply.drop()
	case err != nil:
		c.reply.drop()
		c.replyError(c.statusOf(err))
	case c.reply.buf == nil:
		c.replyVoid()
	}
	// The request goes first: with the reply's leaving the call is over, and
	// may have been the last that Close waits for.
	reply := c.reply
	c.free()
	sc.enqueue(reply)
}

// statusOf maps a handler's error, or the server's own, to what the client is
// told.
func (c *Call) statusOf(err error) error {
	s := c.sc.s
	if isAnswer(err) {
		if isDenial(err) {
			s.stats.denied.Add(1)
		} else {
			s.stats.failed.Add(1)
		}
		return err
	}
	if e, ok := errors.AsType[*AuthError](err); ok {
		s.stats.denied.Add(1)
		return &DeniedError{Stat: AuthRejected, Auth: e.Stat}
	}
	s.stats.failed.Add(1)
	if isGarbage(err) {
		return &AcceptError{Stat: GarbageArgs}
	}
	s.o.Log.Error("call failed", "proc", c.Proc, "xid", c.XID, "client", c.Remote, "err", err)
	return &AcceptError{Stat: SystemErr}
}

// startTLS answers an AUTH_TLS probe (RFC 9289, section 4.1): a NULL call, with
// nothing under way on the connection, and nothing sent behind it before the
// handshake.
func (sc *serverConn) startTLS(c *Call, proc uint32) error {
	deny := func(stat AuthStat) error {
		sc.begun()
		c.conclude(&DeniedError{Stat: AuthRejected, Auth: stat})
		return nil
	}
	switch {
	case sc.s.o.Secure == nil || sc.secured:
		return deny(AuthRejectedCred)
	case proc != 0 || len(c.Auth.Body) != 0:
		return deny(AuthBadCred)
	case c.Verf.Flavor != AuthNone || len(c.Verf.Body) != 0:
		return deny(AuthBadVerf)
	case sc.r.r != sc.r.w:
		// What an attacker put there would pass for sent under TLS.
		c.free()
		return errEarlyData
	}
	sc.begun()
	c.replyStartTLS()
	reply := c.reply
	c.free()
	sc.enqueue(reply)
	sc.flush()
	if !sc.await(0) {
		return errConnGone
	}
	return sc.secure()
}

// secure runs the handshake, within the time that a request has.
func (sc *serverConn) secure() error {
	if err := sc.nc.SetDeadline(time.Now().Add(sc.s.o.HeadTimeout)); err != nil {
		return err
	}
	nc, err := sc.s.o.Secure(sc.nc)
	if err != nil {
		return fmt.Errorf("securing the connection: %w", err)
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return err
	}
	sc.secured = true
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.nc = nc
	return sc.err
}
