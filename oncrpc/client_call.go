package oncrpc

import (
	"context"
	"fmt"
	"runtime"

	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
	"github.com/nfsbox/nfsbox/xdr"
)

// Call calls p with args as auth and decodes the results into res. When it
// returns, nothing touches args, res or the bulk buffers of either any more,
// whatever happened. What res has borrowed is good until the Reply is released.
// With an error nothing is borrowed; a Reply beside an [*AcceptError], a
// [*DeniedError] or results that did not decode says whether the call had been sent
// before, so that the answer may be to a second execution. Results that end too soon
// are an [xdr.ErrShort], and res holds what came of them.
//
// Errors are an [*AcceptError] or a [*DeniedError] if the server answered so;
// ErrTimeout, ErrClosed, ErrNoConnection, ErrBadReply, what ended the last
// connection, or ctx's; an error of package xdr if something did not encode or decode. See
// [ErrNotSent] and [ErrUnknownOutcome] for what they mean for a call that is not
// repeatable.
//
// With [xdr.BulkArgs] and [xdr.BulkResult] the bulk is written from, and read
// to, where it is. A result whose bulk is longer than its buffer closes the
// connection.
func (c *Client) Call(ctx context.Context, p *xdr.Proc, auth Auth, args xdr.Appender, res xdr.Unmarshaler) (Reply, error) {
	return c.call(ctx, p, auth, args, res, false)
}

// CallOnce is Call, but what may have reached the server is not sent again, whatever
// the options say: there are questions on which a server hangs up, and each further one
// would take down a connection that others use. A call that was sent and not answered
// is an [ErrUnknownOutcome]. What the program waits for are other calls: a question
// without an answer alone is no silence ([ClientOptions].Silent).
func (c *Client) CallOnce(ctx context.Context, p *xdr.Proc, auth Auth, args xdr.Appender, res xdr.Unmarshaler) (Reply, error) {
	return c.call(ctx, p, auth, args, res, true)
}

func (c *Client) call(ctx context.Context, p *xdr.Proc, auth Auth, args xdr.Appender, res xdr.Unmarshaler, once bool) (Reply, error) {
	if err := auth.check(); err != nil {
		return Reply{}, fmt.Errorf("oncrpc: %v: %w: %w", p, ErrNotSent, err)
	}
	pc, err := c.open(ctx, p, auth, args, res, once)
	if err != nil {
		return Reply{}, fmt.Errorf("oncrpc: %v: %w: waiting for a free slot: %w", p, ErrNotSent, err)
	}
	r, err := c.exchange(pc)
	c.done(pc, err)
	return r, err
}

// exchange tries until there is a reply, or until again says that there is no further try.
func (c *Client) exchange(pc *call) (Reply, error) {
	for {
		err := c.try(pc)
		if err == nil {
			return pc.result()
		}
		if !c.again(pc, err) {
			return Reply{}, pc.failure(c.gaveUp(pc, err))
		}
	}
}

// try sends the call once and waits for the end of the try. An error says why there is no
// reply.
func (c *Client) try(pc *call) error {
	if pc.conn == nil {
		if err := c.enlist(pc); err != nil {
			return err
		}
	}
	pc.write()
	return c.await(pc)
}

// write writes the connection's queue, if that is the caller's duty.
func (pc *call) write() {
	if pc.duty == noDuty {
		return
	}
	if pc.duty == writesInCompany {
		runtime.Gosched() // see flushAlone
	}
	pc.duty = noDuty
	pc.conn.flush(pc)
}

// await waits for the end of a try.
func (c *Client) await(pc *call) error {
	cc := pc.conn
	for {
		switch c.look(pc) {
		case isOver:
			return pc.err
		case leads:
			cc.read()
		case waits:
			// The goroutine that ends the try, or appoints a leader, sends the token. The
			// clock looks for contexts that have ended.
			<-pc.wake
		}
	}
}

// next is what a caller does.
type next uint8

const (
	waits  next = iota
	leads       // reads, until its try or the connection is over
	isOver      // leaves: the try is over, and no part of the call is lent
)

// look says what the caller of pc does next. If it waits, signal will wake it.
func (c *Client) look(pc *call) next {
	c.mu.Lock()
	defer c.mu.Unlock()
	cc := pc.conn
	if pc.phase == phase.Over && cc.leader == pc {
		cc.handOver()
	}
	switch {
	case pc.idle():
		c.depart(pc)
		return isOver
	case pc.phase != phase.Over && cc.takesLead(pc):
		return leads
	}
	pc.caller = sleeping
	if pc.phase != phase.Over {
		pc.caller = following
		cc.followers.add(pc)
	}
	return waits
}

// depart ends the try of a call that is idle, and takes it off the connection. Client.mu
// is held.
func (c *Client) depart(pc *call) {
	pc.phase.To(phase.Resting)
	if pc.wrote || pc.err == nil {
		pc.sends++
	}
	pc.unheard = !pc.conn.spoke && pc.replies == c.stats.Replies
	pc.conn.leave(pc)
}

// result decodes the reply.
func (pc *call) result() (Reply, error) {
	r := Reply{rec: pc.rec, tail: pc.tail}
	err := pc.decode()
	if err == nil {
		r.Verf, r.Took, r.Resent = pc.verf, pc.took(), pc.sends > 1
		return r, nil
	}
	r.Release()
	if isAnswer(err) {
		return Reply{Took: pc.took(), Resent: pc.sends > 1}, fmt.Errorf("oncrpc: %v: %w", pc.proc, err)
	}
	return Reply{Took: pc.took(), Resent: pc.sends > 1}, pc.failure(fmt.Errorf("reply of no use: %w", err))
}

// decode decodes what the reader has not decoded.
func (pc *call) decode() error {
	d := &pc.dec
	if pc.parsed == nothing {
		d.Reset(pc.body)
		pc.verf, pc.refusal = decodeReply(d)
	}
	if pc.refusal != nil {
		return pc.refusal
	}
	switch {
	case pc.parsed == bulkIn:
		d.Reset(pc.tailBytes)
		if err := pc.bulkRes.DecodeTail(d); err != nil {
			return err
		}
	case pc.bulkRes == nil:
		if err := pc.res.DecodeXDR(d); err != nil {
			return err
		}
	}
	return d.Finish()
}

// Close ends the client: calls under way return ErrClosed, or an unknown
// outcome. It waits for the client's own goroutines, and may be called twice.
func (c *Client) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.now = c.clock()
		c.watchSilence() // an answer since the last tick may have been the last one
	}
	c.closed = true
	for len(c.conns) > 0 {
		c.conns[0].fail(ErrClosed)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.stop()
	c.wg.Wait()
	return nil
}
