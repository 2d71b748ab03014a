package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
)

// This file ends tries and connections, and says what a server has done wrong.
//
// A caller that is cancelled, or whose try has timed out, may not return while the
// reader or the writer borrows its buffers; a peer that stands still must not hold it
// there. Therefore a deadline in the past interrupts the read or the write under way.
// The interrupted goroutine gives the buffers back, resets the deadline, and goes on with
// the stream where it was.

// lost says of err that it ended the connection.
func lost(err error) error {
	if errors.Is(err, io.EOF) {
		err = hungUp{}
	}
	return fmt.Errorf("connection lost: %w", err)
}

// hungUp is io.EOF in plain words.
type hungUp struct{}

func (hungUp) Error() string { return "the server hung up" }

func (hungUp) Unwrap() error { return io.EOF }

// finish ends the try, with err or, if that is nil, with a reply. hub.mu is held.
func (pc *call) finish(err error) {
	cc := pc.conn
	switch {
	case pc.phase == phase.Queued:
		cc.unqueue(pc)
	case err != nil && pc.wrote && pc.phase != phase.Arriving:
		cc.owed++
	}
	pc.phase.To(phase.Over)
	pc.err = err
	pc.signal()
}

// unqueue takes pc out of the queue, before any of it was written. hub.mu is held.
func (cc *clientConn) unqueue(pc *call) {
	cc.queue = slices.DeleteFunc(cc.queue, func(o *call) bool { return o == pc })
}

// signal wakes the caller if it waits. hub.mu is held.
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

// giveBack ends the writer's use of pc. hub.mu is held.
func (pc *call) giveBack() {
	pc.lent &^= byWriter
	if pc.phase == phase.Over {
		pc.signal()
	}
}

// release ends the reader's use of pc. hub.mu is held.
func (cc *clientConn) release(pc *call) {
	cc.sink = nil
	pc.lent &^= byReader
	pc.signal()
}

// drop releases the buffers of the reply at hand, and makes ready for the next.
func (p *reply) drop() {
	if p.rec != nil {
		p.rec.Release()
	}
	if p.tail != nil {
		p.tail.Release()
	}
	p.rec, p.tail, p.dst, p.ahead, p.stage = nil, nil, nil, nil, between
}

// fail ends the connection and every try that is under way on it. Only the first reason
// counts. hub.mu is held.
func (cc *clientConn) fail(err error) {
	if cc.err != nil {
		return
	}
	h := cc.hub
	cc.err = err
	cc.retire()
	h.conns = slices.DeleteFunc(h.conns, func(o *clientConn) bool { return o == cc })
	h.owner.ended(cc, err)
	for _, pc := range h.slots {
		// Calls in the batch are left to the writer: it knows which were written.
		if pc != nil && pc.conn == cc && pc.phase != phase.Over && pc.phase != phase.Batched {
			pc.finish(err)
		}
	}
	if !cc.reading {
		cc.dismiss()
	}
	if cc.inline {
		_ = cc.nc.Close() // the connection is lost in any case
		return
	}
	// TLS sends an alert, and may wait for room to do so.
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		_ = cc.nc.Close() // as above
	}()
}

// dismiss ends reading after the connection's end, and releases the buffers. hub.mu is
// held.
func (cc *clientConn) dismiss() {
	cc.reading, cc.leader = false, nil
	cc.reply.drop()
	if cc.window != nil {
		cc.window.Release()
		cc.window = nil
	}
}

// urge interrupts the reader and the writer if they use pc. hub.mu is held.
func (cc *clientConn) urge(pc *call) {
	if pc.lent&byReader != 0 {
		// An error means that the connection is closed: the read ends anyway.
		_ = cc.nc.SetReadDeadline(past)
	}
	if pc.lent&byWriter != 0 {
		cc.disturb()
	}
}

// disturb interrupts the writer, if that is a caller. A writing goroutine of the client
// works on a copy, and its connection would not survive. hub.mu is held.
func (cc *clientConn) disturb() {
	if cc.inline && !cc.disturbed {
		cc.disturbed = true
		_ = cc.nc.SetWriteDeadline(past) // as above
	}
}

// undisturb lets writes block again. hub.mu is held.
func (cc *clientConn) undisturb() {
	if cc.disturbed {
		cc.disturbed, cc.stalled = false, false
		_ = cc.nc.SetWriteDeadline(time.Time{}) // on a closed connection the next write says so
	}
}

// A connection may end because the server broke the protocol (a breach). The call then has
// one more try, since a bit may have been wrong on the way. A server that breaks the
// protocol in the same way again would do so for ever, and each time take down the
// connection that other calls use.

// errTooLong stands for every RecordError: the announced length does not make it another
// kind of breach.
var errTooLong = errors.New("record too long")

// breachOf is the kind of breach that err is; nil: none.
func breachOf(err error) error {
	for _, kind := range [...]error{errNotReply, errCutMessage, errEmpties, errStray} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if _, ok := errors.AsType[*RecordError](err); ok {
		return errTooLong
	}
	return nil
}

// foreign reports whether what has come is of a protocol that is known to be another one.
func foreign(err error) bool {
	e, ok := errors.AsType[*RecordError](err)
	return ok && e.Speaks != ""
}

// blame notes the breach that err is in the call to which it came as the reply, by the
// transaction number. If no number has come, it notes the breach in every call of the
// connection: in a single one as surely its own, else as perhaps another's. A server that
// speaks another protocol, and has never answered a call, would do so to each. hub.mu is
// held.
func (cc *clientConn) blame(err error) {
	kind := breachOf(err)
	if kind == nil {
		return
	}
	toEach := foreign(err) && !cc.hub.reached
	numbered := cc.stage > inHead
	owner := cc.suspect()
	for _, pc := range cc.hub.slots {
		if pc != nil && pc.conn == cc && pc.phase != phase.Over && (owner == pc || owner == nil && !numbered) {
			pc.breach, pc.mine = kind, owner == pc || cc.calls == 1 || toEach
		}
	}
}

// suspect is the call whose reply is being read; nil: none. While the head is still being
// read, the first four bytes that have come are taken for the transaction number. hub.mu
// is held.
func (cc *clientConn) suspect() *call {
	if cc.stage <= inHead {
		first := cc.r.buf[cc.r.r:cc.r.w]
		if cc.rec != nil && len(cc.rec.B) > 0 {
			first = cc.rec.B
		}
		if len(first) < 4 {
			return nil
		}
		cc.xid = binary.BigEndian.Uint32(first)
	}
	return cc.lookup()
}
