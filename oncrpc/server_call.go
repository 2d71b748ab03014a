package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// decode consumes the head of the request and finds the procedure. An error is the answer
// ([isAnswer]), or says that the message is no call.
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
		c.Proc, c.counters = &svc.Program.Procs[i], &svc.counters[i]
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

// find returns the service, and the index of the procedure that a call asks for; -1: it is
// procedure 0, which the program does not list. An error is the answer.
func (s *Server) find(prog, vers, proc uint32) (*binding, int, error) {
	var low, high uint32
	known := false
	for i := range s.services {
		p := s.services[i].Program
		if p.Number != prog {
			continue
		}
		if p.Version == vers {
			j := procIndex(p, proc)
			if j < 0 && proc != 0 {
				return nil, 0, &AcceptError{Stat: ProcUnavail}
			}
			return &s.services[i], j, nil
		}
		if !known {
			low, high, known = p.Version, p.Version, true
		}
		low, high = min(low, p.Version), max(high, p.Version)
	}
	if known {
		return nil, 0, &AcceptError{Stat: ProgMismatch, Low: low, High: high}
	}
	return nil, 0, &AcceptError{Stat: ProgUnavail}
}

// procIndex is the index of procedure number in p; -1: there is none.
func procIndex(p *xdr.Program, number uint32) int {
	if int64(number) < int64(len(p.Procs)) && p.Procs[number].Number == number {
		return int(number)
	}
	for i := range p.Procs {
		if p.Procs[i].Number == number {
			return i
		}
	}
	return -1
}

// run executes a call. It returns the route that has the reply, and is to be flushed, and
// how long the call took. A handler may end its goroutine (runtime.Goexit), as one does
// whose thread has become unusable: then the route is flushed here.
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
		// What has begun is finished and remembered, even if the connection is lost.
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

// handle runs the handler. A panic becomes an error.
func (c *Call) handle(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.s.stats.panics.Add(1)
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.handler(ctx, c)
}

// conclude turns what the handler has returned into the reply, frees the call, and puts
// the reply in the queue of a route. It returns that route, and how long the call took.
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
	// The request is freed first: when the reply has left, Close may stop waiting.
	reply := c.reply
	c.free()
	if newer != nil {
		to.Unanswered()
		to = newer
	}
	to.enqueue(reply)
	return to, took
}

// statusOf maps an error, of a handler or the server's own, to what the client is told.
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

// Forget says that the reply to c is not to be remembered, so that a retransmission is
// executed anew: for a reply that says "try again later", or a call that was cut off. An
// error of RPC is not remembered in any case.
func (c *Call) Forget() { c.once.forget = true }

// claim asks the Replies what becomes of c, and reports whether to execute it. If not, c
// was freed.
func (c *Call) claim() bool {
	to, client := c.to, c.once.client
	v, entry := client.Claim((*Claim)(c), to, c.once.serial)
	switch v {
	case Execute:
		c.once.entry = entry
		return true
	case Replay:
		reply := c.reply
		c.observe(nil, c.measure(nil))
		c.free()
		to.enqueue(reply)
		return false
	}
	if to.context().Err() != nil {
		client.Leave(to) // the connection was lost meanwhile; its own Leave may have come too soon
	}
	return false
}

// Replay gives the call the reply that was remembered, a message without its record mark.
// It copies message.
func (c *Claim) Replay(message []byte) {
	b := c.s.pool.Get(markBytes + len(message))
	b.B = append(beginRecord(b.B[:0]), message...)
	_ = endRecord(b.B, 0, 0) // fails above 2 GiB
	c.reply.buf = b
}

// PassOn frees the call, which is not answered here. Afterwards the asker's call may end at
// any time, and its server's Close does not wait for c: do not use it.
func (c *Claim) PassOn() { (*Call)(c).freeUnanswered() }

// freeUnanswered counts and frees a call that is not answered here.
func (c *Call) freeUnanswered() {
	c.counters.unanswered.Add(1)
	c.free()
}

// late drops a call whose connection was lost before its handler began. The client has
// sent it again, or will. Executed now, it could undo a later call.
func (c *Call) late() {
	to := c.to
	c.s.stats.late.Add(1)
	c.freeUnanswered()
	to.Unanswered()
}

// settle hands the answer to the Replies. It returns the route that gets the reply; nil:
// the one by which the call came.
func (c *Call) settle(err error) route {
	a, entry := &c.reply, c.once.entry
	var to Asker
	switch {
	case err != nil || c.once.forget || !c.s.admits(c.State):
		to = entry.Forget()
	case a.bulk == nil:
		to = entry.Remember(a.buf.B[markBytes:], nil, nil)
	default:
		to = entry.Remember(a.buf.B[markBytes:a.at], a.bulk, a.buf.B[a.at:])
	}
	if to == nil {
		return nil
	}
	return to.(route)
}
