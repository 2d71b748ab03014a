package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// call is one call under way. It is the caller's, who waits; the writer and the
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
	wake     chan struct{}  // one token: look again

	// Guarded by Client.mu.
	conn     *clientConn // of this try; nil between tries
	due      time.Time   // when this try times out
	queued   bool        // stands in conn's queue; nothing is borrowed
	batched  bool        // in the batch that conn's writer is at
	writing  bool        // conn's writer borrows auth, args and args' bulk
	reading  bool        // conn's reader borrows res and res' bulk
	finished bool        // err or the reply is there; a reply now would be late
	wrote    bool        // it was written whole, or may have been: the server may execute it
	err      error       // why there is no reply

	// The caller's, between tries.
	sent    bool // in any try so far
	resends int
	unsent  int

	// Set by the reader before finished, then the caller's.
	rec, tail *bufpool.Buffer
	verf      Auth
	answer    error  // what the reply's head says, if that is not success
	tailBytes []byte // with filled: what follows the bulk
	filled    bool   // the bulk is in its place
	parsed    bool   // the reader has looked into the reply
	dec       xdr.Decoder
}

// open takes a slot, with a number that no other call has.
func (c *Client) open() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pc *call
	if n := len(c.free); n > 0 {
		pc, c.free = c.free[n-1], c.free[:n-1]
	} else {
		pc = &call{wake: make(chan struct{}, 1)}
	}
	for c.slots[c.next%slotCount] != nil {
		c.next++
		c.issued++
	}
	pc.xid = c.next
	c.slots[c.next%slotCount] = pc
	c.next++
	c.issued++
	c.inFlight++
	c.stats.Calls++
	return pc
}

// done gives the slot back. Its number will not come again before all others
// have, so that a late reply finds nobody.
func (c *Client) done(pc *call) {
	wake := pc.wake
	select {
	case <-wake:
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[pc.xid%slotCount] = nil
	*pc = call{wake: wake}
	c.free = append(c.free, pc)
	c.inFlight--
}

// exchange tries until there is a reply or no sense in trying again.
func (c *Client) exchange(pc *call) (Reply, error) {
	for {
		err := c.try(pc)
		if err == nil {
			return pc.result()
		}
		if !c.again(pc, err) {
			return Reply{}, pc.failure(err)
		}
	}
}

// try sends the call once and waits. An error means that there is no reply.
func (c *Client) try(pc *call) error {
	pc.wrote, pc.finished, pc.err = false, false, nil
	if err := pc.ctx.Err(); err != nil {
		return err
	}
	cc, err := c.connection(pc.ctx)
	if err != nil {
		return err
	}
	cc.send(pc)
	cancel := pc.ctx.Done()
	for {
		select {
		case <-pc.wake:
		case <-cancel:
			cancel = nil
			c.leave(pc)
		}
		if done, err := c.settled(pc); done {
			return err
		}
	}
}

// leave ends a try on the caller's behalf, and urges those who still borrow
// parts of the call to hand them back.
func (c *Client) leave(pc *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !pc.finished {
		c.stats.Cancelled++
		pc.finish(pc.ctx.Err())
	}
	pc.conn.urge(pc)
}

// settled reports whether the try has come to its end: finished, and nobody
// borrows a part of it.
func (c *Client) settled(pc *call) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !pc.finished || pc.writing || pc.reading {
		return false, nil
	}
	pc.sent = pc.sent || pc.wrote
	pc.conn.leave(pc)
	return true, pc.err
}

// finish says that the try is over. Client.mu is held.
func (pc *call) finish(err error) {
	pc.finished, pc.err = true, err
	if pc.queued {
		pc.conn.unqueue(pc)
	}
	pc.signal()
}

func (pc *call) signal() {
	select {
	case pc.wake <- struct{}{}:
	default:
	}
}

// encodeError marks arguments that do not encode: another try would not help.
type encodeError struct{ err error }

func (e *encodeError) Error() string { return e.err.Error() }
func (e *encodeError) Unwrap() error { return e.err }

// again decides whether a call that got no reply is sent again. Version 3 of
// NFS, and good manners, want that on a new connection only; a try fails for
// want of its connection, or has retired it.
func (c *Client) again(pc *call, err error) bool {
	if pc.ctx.Err() != nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrNoConnection) {
		return false
	}
	if _, ok := errors.AsType[*encodeError](err); ok {
		return false
	}
	if !pc.wrote && !errors.Is(err, ErrTimeout) {
		pc.unsent++
		return pc.unsent < maxUnsentTries
	}
	if (pc.wrote && !pc.proc.Repeatable) || pc.resends >= c.o.Retries {
		return false
	}
	pc.resends++
	if pc.sent {
		c.mu.Lock()
		c.stats.Retransmits++
		c.mu.Unlock()
	}
	return true
}

// failure dresses err as what Call returns.
func (pc *call) failure(err error) error {
	if pc.sent && !pc.proc.Repeatable {
		return fmt.Errorf("oncrpc: %v: %w: %w", pc.proc, ErrUnknownOutcome, err)
	}
	return fmt.Errorf("oncrpc: %v: %w", pc.proc, err)
}

// result decodes the reply.
func (pc *call) result() (Reply, error) {
	r := Reply{rec: pc.rec, tail: pc.tail}
	err := pc.decode()
	if err == nil {
		r.Verf = pc.verf
		return r, nil
	}
	r.Release()
	if isAnswer(err) {
		return Reply{}, fmt.Errorf("oncrpc: %v: %w", pc.proc, err)
	}
	return Reply{}, pc.failure(fmt.Errorf("reply of no use: %w", err))
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
		d.Reset(pc.rec.B[4:])
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
