package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// call is one call under way. It is the caller's, which waits; the writer and the
// reader of a connection borrow parts of it, as writing and reading say.
type call struct {
	xid      uint32
	ctx      context.Context
	proc     *xdr.Proc
	auth     Auth
	args     xdr.Appender
	bulkArgs xdr.BulkArgs // args, or nil
	res      xdr.Unmarshaler
	bulkRes  xdr.BulkResult // res, or nil
	bulky    bool           // it moves file data, in either direction
	wake     chan struct{}  // one token: look again
	counters *procCounters  // may be nil
	began    time.Duration  // a moment, as all of these
	deadline time.Duration  // when the caller's patience ends

	// Guarded by Client.mu.
	conn      *clientConn   // of this try; nil between tries
	due       time.Duration // when this try times out
	wait      time.Duration // of this try, between its beginning and due
	sentAt    time.Duration // when this try was about to be written; 0: not yet
	firstAt   time.Duration // the same of the first try
	gotAt     time.Duration // when the reply came
	replies   uint64        // that the client had when this try was sent
	unheard   bool          // nobody has had one since, and this try's connection has brought none
	queued    bool          // stands in conn's queue; nothing is borrowed
	batched   bool          // in the batch that conn's writer is at
	writing   bool          // conn's writer borrows auth, args and args' bulk
	reading   bool          // conn's reader borrows res and res' bulk
	claimed   bool          // its reply, with bulk, has begun to arrive
	finished  bool          // err or the reply is there; a reply now would be late
	wrote     bool          // it was written whole, or may have been: the server may execute it
	begun     bool          // a part of it was written, and not all
	waiting   bool          // the caller needs a signal to look again
	following bool          // it is among conn's followers
	writes    bool          // its caller is to write what stands in the queue
	company   bool          // and is not alone
	many      bool          // its caller may be waiting for another call
	older     *call
	newer     *call
	err       error // why there is no reply
	breach    error // the kind of what broke the protocol on this try's connection; nil: nothing did
	mine      bool  // and it was surely this call's reply

	// The caller's, between tries.
	once        bool          // never to be sent twice
	sent        bool          // in any try so far
	resent      bool          // in a try before this one
	broken      error         // the kind of the breaches so far
	breaches    int           // of that kind in a row that were surely this call's
	near        int           // and those that may have been another's
	first       int           // tries that ended before the server had ever answered anybody
	lost        int           // tries that lost a connection on which others were answered
	notBefore   time.Duration // when the next try may begin; a moment
	retransmits int
	timeouts    int    // guarded by Client.mu
	bytesOut    uint64 // guarded by Client.mu
	bytesIn     uint64

	// Set by the reader before finished, then the caller's.
	rec, tail *bufpool.Buffer
	body      []byte // of the reply, in rec: what follows the transaction number
	verf      Auth
	answer    error  // what the reply's head says, if that is not success
	tailBytes []byte // with filled: what follows the bulk
	filled    bool   // the bulk is in its place
	parsed    bool   // the reader has looked into the reply
	dec       xdr.Decoder
}

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
	if pc.writes {
		pc.writes = false
		pc.conn.flushInCompany(pc)
	}
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
	if pc.finished && cc.leader == pc {
		cc.handOver()
	}
	switch {
	case pc.idle():
		c.depart(pc)
		return isOver
	case !pc.finished && cc.takesLead(pc):
		return leads
	}
	pc.waiting = true
	if !pc.finished {
		pc.following = true
		cc.followers.add(pc)
	}
	return waits
}

// idle reports whether the try is over and nobody borrows a part of the call.
// Client.mu is held.
func (pc *call) idle() bool { return pc.finished && !pc.writing && !pc.reading }

// depart takes a call that is idle off its connection. The batch that it was in may
// still be on its way; that is not the next try's. Client.mu is held.
func (c *Client) depart(pc *call) {
	pc.batched = false
	pc.sent = pc.sent || pc.wrote
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
	pc.finished, pc.err = true, err
	if pc.queued {
		cc.unqueue(pc)
	} else if err != nil && pc.wrote && !pc.claimed {
		cc.owed++
	}
	pc.signal()
}

// signal wakes the caller if it waits. Client.mu is held.
func (pc *call) signal() {
	if pc.following {
		pc.following = false
		pc.conn.followers.remove(pc)
	}
	if pc.waiting {
		pc.waiting = false
		pc.wake <- struct{}{} // there is room: the token before was taken
	}
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
		r.Verf, r.Took, r.Resent = pc.verf, pc.took(), pc.resent
		return r, nil
	}
	r.Release()
	if isAnswer(err) {
		return Reply{Took: pc.took(), Resent: pc.resent}, fmt.Errorf("oncrpc: %v: %w", pc.proc, err)
	}
	return Reply{Took: pc.took(), Resent: pc.resent}, pc.failure(fmt.Errorf("reply of no use: %w", err))
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
	if !pc.parsed {
		d.Reset(pc.body)
		pc.verf, pc.answer = decodeReply(d)
	}
	if pc.answer != nil {
		return pc.answer
	}
	switch {
	case pc.filled:
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
