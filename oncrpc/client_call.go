package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// call is one call under way. It belongs to its caller, which waits. The writer and
// the reader of a connection borrow parts of it, as lent says.
type call struct {
	xid  uint32
	wake chan struct{} // one token: look again
	request
	try
	history
	answer
}

// request is what is asked for; it does not change while the call lasts.
type request struct {
	ctx      context.Context
	proc     *xdr.Proc
	auth     Auth
	args     xdr.Appender
	bulkArgs xdr.BulkArgs // args, or nil
	res      xdr.Unmarshaler
	bulkRes  xdr.BulkResult // res, or nil
	counters *procCounters  // may be nil
	began    time.Duration  // times are since Client.born, here and below
	deadline time.Duration  // when the caller's patience ends
	once     bool           // never to be sent twice
	many     bool           // its caller may be waiting for another of its calls
}

// try is one sending of the call on one connection. Guarded by Client.mu.
type try struct {
	phase   phase
	lent    borrowers
	caller  callerState
	duty    duty
	conn    *clientConn   // nil: resting
	due     time.Duration // when this try times out
	sentAt  time.Duration // when it was about to be written; 0: not yet
	gotAt   time.Duration // when the reply came
	replies uint64        // that the client had when it was queued
	wrote   bool          // written whole, or perhaps so: the server may execute it
	err     error         // why there is no reply
	breach  error         // how its connection broke the protocol; nil: it did not
	mine    bool          // and that was surely in this call's reply
	older   *call         // among conn's followers
	newer   *call
}

// history is what the tries have shown. It is the caller's, between tries, but for what
// is marked.
type history struct {
	wait        time.Duration // the time-out of this try; guarded by Client.mu
	firstAt     time.Duration // sentAt of the first try that was sent; guarded by Client.mu
	sends       int           // tries that were sent
	unheard     bool          // the server has answered no call since the last try began
	broken      error         // the kind of the breaches so far
	breaches    int           // of that kind in a row that were surely this call's
	near        int           // and those that may have been another's
	first       int           // tries that ended before the server had ever answered any call
	lost        int           // tries that lost a connection on which others were answered
	notBefore   time.Duration // when the next try may begin
	retransmits int
	timeouts    int    // guarded by Client.mu
	bytesOut    uint64 // guarded by Client.mu
	bytesIn     uint64
}

// answer is the reply: the reader's, and the caller's once the phase is over.
type answer struct {
	rec, tail *bufpool.Buffer
	body      []byte // the reply, in rec, behind the transaction number
	verf      Auth
	refusal   error // what the reply's head says, if that is not success
	parsed    parsed
	tailBytes []byte // with bulkIn: what follows the bulk
	dec       xdr.Decoder
}

// parsed is how far the reader has decoded a reply; the caller decodes the rest.
type parsed uint8

const (
	nothing parsed = iota
	headIn         // the head: see refusal
	bulkIn         // and the bulk, which is in its place
)

// exchange tries until there is a reply or no sense in trying again.
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

// try sends the call once and waits. An error means that there is no reply.
func (c *Client) try(pc *call) error {
	if pc.conn == nil {
		if err := c.enlist(pc); err != nil {
			return err
		}
	}
	pc.write()
	return c.await(pc)
}

// write writes what stands in the queue, if that is the caller's duty.
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
			// The goroutine that has news sends the token; of contexts that end, it is
			// the clock.
			<-pc.wake
		}
	}
}

// What a caller does next.
type next uint8

const (
	waits  next = iota
	leads       // reads, until its try is over or the connection is
	isOver      // leaves: the try has ended, and nobody borrows a part of the call
)

// look says what the caller of pc does next. If that is to wait, it will be
// signalled.
func (c *Client) look(pc *call) next {
	c.mu.Lock()
	defer c.mu.Unlock()
	cc := pc.conn
	if pc.phase == over && cc.leader == pc {
		cc.handOver()
	}
	switch {
	case pc.idle():
		c.depart(pc)
		return isOver
	case pc.phase != over && cc.takesLead(pc):
		return leads
	}
	pc.caller = sleeping
	if pc.phase != over {
		pc.caller = following
		cc.followers.add(pc)
	}
	return waits
}

// idle reports whether the try is over and nobody borrows a part of the call.
// Client.mu is held.
func (pc *call) idle() bool { return pc.phase == over && pc.lent == 0 }

// depart takes a call that is idle off its connection. The batch that it was in may
// still be on its way; that is not the next try's. Client.mu is held.
func (c *Client) depart(pc *call) {
	pc.to(resting)
	if pc.wrote || pc.err == nil {
		pc.sends++
	}
	pc.unheard = !pc.conn.spoke && pc.replies == c.stats.Replies
	pc.conn.leave(pc)
}

// cancelled ends a try because its caller wants to leave. Client.mu is held.
func (c *Client) cancelled(pc *call) {
	c.stats.Cancelled++
	pc.finish(pc.ctx.Err())
}

// finish says that the try is over. Client.mu is held.
func (pc *call) finish(err error) {
	cc := pc.conn
	switch {
	case pc.phase == queued:
		cc.unqueue(pc)
	case err != nil && pc.wrote && pc.phase != arriving:
		cc.owed++
	}
	pc.to(over)
	pc.err = err
	pc.signal()
}

// signal wakes the caller if it waits. Client.mu is held.
func (pc *call) signal() {
	if pc.caller == awake {
		return
	}
	if pc.caller == following {
		pc.conn.followers.remove(pc)
	}
	pc.caller = awake
	pc.wake <- struct{}{} // there is room: the token before was taken
}

// took is the time from the sending of the answered try to its reply; 0 without
// one.
func (pc *call) took() time.Duration {
	if pc.gotAt == 0 {
		return 0
	}
	return max(pc.gotAt-pc.sentAt, 1)
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

// isAnswer reports whether err is what the server said about the call.
func isAnswer(err error) bool {
	if _, ok := errors.AsType[*AcceptError](err); ok {
		return true
	}
	return isDenial(err)
}

func isDenial(err error) bool {
	_, ok := errors.AsType[*DeniedError](err)
	return ok
}

// decode decodes what the reader has not.
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
