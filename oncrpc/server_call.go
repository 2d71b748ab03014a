package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
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

	s         *Server
	to        route           // where the call came from
	rec       *bufpool.Buffer // the request
	arrived   time.Duration   // on the server's clock
	began     time.Duration   // the handler; 0: nobody wants to know, or it has not
	allowance allowance
	handler   Handler
	meter     *meter // of the procedure; nil: it has none
	once      once
	reply     answered
}

// route leads back to where a call came from: a connection, or a datagram.
type route interface {
	Asker
	// context is that of handlers. It ends when no reply can get there any more.
	context() context.Context
	// enqueue takes a call's reply, or none, and with it the call is over.
	enqueue(answered)
	// flush sends what was enqueued, or sees to it that somebody does.
	flush()
}

// newCall returns a call that came by to, and still needs its request.
func (s *Server) newCall(to route) *Call {
	c, _ := s.calls.Get().(*Call)
	if c == nil {
		c = &Call{}
	}
	c.s, c.to = s, to
	return c
}

// free gives back the request and what it held.
func (c *Call) free() {
	s := c.s
	c.rec.Release()
	c.allowance.put()
	*c = Call{}
	s.calls.Put(c)
}

// start looks at the head of a request and has it answered. An error means that
// the connection cannot go on; c is used up in any case.
func (sc *serverConn) start(c *Call) error {
	c.arrived = sc.arrived
	proc, err := c.decode()
	if err != nil && !isAnswer(err) {
		c.free()
		return err
	}
	if err == nil && c.Auth.Flavor == AuthTLS {
		return sc.startTLS(c, proc)
	}
	if err != nil || c.handler == nil {
		sc.begun()
		c.conclude(err)
		return nil
	}
	if c.once.is {
		c.once.client, c.once.serial = sc.client, sc.serial
	}
	sc.begin(c)
	return nil
}

// decode consumes the head of the request and finds the procedure. An error that
// is no answer is a message that is no call.
func (c *Call) decode() (proc uint32, err error) {
	c.s.stats.calls.Add(1)
	c.Args.Reset(c.rec.B)
	var h callHead
	err = h.decode(&c.Args)
	if err != nil && !isDenial(err) {
		return 0, err
	}
	c.XID, c.Auth, c.Verf = h.xid, h.cred, h.verf
	if err == nil && h.cred.Flavor != AuthTLS {
		err = c.bind(h.prog, h.vers, h.proc)
	}
	return h.proc, err
}

// bind finds the procedure's handler. Procedure 0 needs none.
func (c *Call) bind(prog, vers, proc uint32) error {
	svc, i, err := c.s.find(prog, vers, proc)
	if err != nil {
		return err
	}
	if i >= 0 {
		c.Proc, c.meter = &svc.Program.Procs[i], &svc.meters[i]
	}
	if i >= 0 && i < len(svc.Handlers) {
		c.handler = svc.Handlers[i]
	}
	c.once.is = i >= 0 && i < len(svc.Once) && svc.Once[i]
	if c.handler == nil && proc != 0 {
		return &AcceptError{Stat: ProcUnavail}
	}
	return nil
}

// run executes a call. It answers by which route the reply will leave once that
// is flushed, and how long the call took. A handler may end the goroutine
// (runtime.Goexit), as one does whose thread has become unusable.
func (c *Call) run() (to route, took time.Duration) {
	s, ctx, err := c.s, c.to.context(), errExited
	to = c.to
	if s.o.Observe != nil {
		c.began = s.clock()
	}
	if ctx.Err() != nil {
		c.late()
		return to, 0
	}
	if c.once.client != nil {
		if !c.claim() {
			return to, 0
		}
		// What has begun is finished, and remembered, whether or not the
		// client is still there.
		ctx = s.ctx
	}
	defer func() {
		to, took = c.conclude(err)
		if errors.Is(err, errExited) {
			to.flush()
		}
	}()
	err = c.handle(ctx)
	return to, took
}

// handle runs the handler; a panic is an error like others.
func (c *Call) handle(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.s.stats.panics.Add(1)
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.handler(ctx, c)
}

// conclude turns what the handler has returned into the reply, frees the call
// and puts the reply in the queue. It answers by which route that will leave, and
// how long the call took.
func (c *Call) conclude(err error) (to route, took time.Duration) {
	switch {
	case errors.Is(err, ErrDrop):
		c.s.stats.dropped.Add(1)
		c.reply.drop()
	case err != nil:
		c.reply.drop()
		c.replyError(c.statusOf(err))
	case c.reply.buf == nil:
		c.replyVoid()
	}
	took = c.measure(err)
	c.observe(err, took)
	to = c.to
	var newer route
	if c.once.entry != nil {
		newer = c.settle(err)
	}
	// The request goes first: with the reply's leaving the call is over, and
	// may have been the last that Close waits for.
	reply := c.reply
	c.free()
	if newer != nil {
		to.Unanswered()
		to = newer
	}
	to.enqueue(reply)
	return to, took
}

// statusOf maps a handler's error, or the server's own, to what the client is
// told.
func (c *Call) statusOf(err error) error {
	s := c.s
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
