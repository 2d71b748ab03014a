package oncrpc

import (
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// This file makes callers leave. A caller who is cancelled, or whose try has
// timed out, may not return while a reader or a writer of the connection still
// borrows its buffers, and a peer that stands still must not hold it there. So
// the read or the write under way is interrupted with a deadline in the past;
// the goroutine that was interrupted gives back what the callers want back, resets the
// deadline and carries on with the stream where it was.

// past is a deadline that has gone by.
var past = time.Unix(1, 0)

// lost wraps what ended a connection.
func lost(err error) error { return fmt.Errorf("connection lost: %w", err) }

// urge makes the reader and the writer give pc back. Client.mu is held.
func (cc *clientConn) urge(pc *call) {
	if pc.lent&byReader != 0 {
		// An error means that the connection is closed: the read ends anyway.
		_ = cc.nc.SetReadDeadline(past)
	}
	if pc.lent&byWriter != 0 {
		cc.disturb()
	}
}

// disturb interrupts the writer. One that is a goroutine of its own holds
// nobody's bytes, and its connection would not survive. Client.mu is held.
func (cc *clientConn) disturb() {
	if cc.inline && !cc.disturbed {
		cc.disturbed = true
		_ = cc.nc.SetWriteDeadline(past) // as above
	}
}

// undisturb lets writes block again. Client.mu is held.
func (cc *clientConn) undisturb() {
	if cc.disturbed {
		cc.disturbed, cc.stalled = false, false
		_ = cc.nc.SetWriteDeadline(time.Time{}) // on a closed connection the next write says so
	}
}

// resume puts an interrupted write in order: callers who want to leave get
// their bulk back, and what of it is not written yet goes on as a copy. It
// answers false if the connection has no future. progress says whether the
// write had moved before it was interrupted.
func (cc *clientConn) resume(progress bool) bool {
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if cc.err != nil || (cc.stalled && !progress) {
		return false
	}
	cc.undisturb()
	cc.began = c.moment()
	done := cc.out.written()
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.cut < 0 || s.pc.phase != over {
			continue
		}
		if at := 2*s.cut + 1; at >= done {
			cc.out.segs[at] = append([]byte(nil), cc.out.segs[at]...)
		}
		s.cut = -1
		s.pc.giveBack()
	}
	return true
}

// passOn hands the writer's duty to a goroutine if self wants to leave.
func (cc *clientConn) passOn(self *call) bool {
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if self == nil || c.closed || self.phase != over {
		return false
	}
	cc.writer = nil
	c.wg.Add(1)
	go cc.carryOn()
	return true
}

// carryOn finishes the batch that another had begun to write.
func (cc *clientConn) carryOn() {
	defer cc.c.wg.Done()
	for ok := cc.push(nil); ok && cc.take(nil, 1); ok = cc.push(nil) {
		cc.encode()
	}
}

// coalesce copies the batch's bulk for a writer that cannot be interrupted, and
// gives the calls back.
func (cc *clientConn) coalesce() *bufpool.Buffer {
	c := cc.c
	buf := cc.out.coalesce(&c.pool)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range cc.sending {
		if s := &cc.sending[i]; s.cut >= 0 {
			s.cut = -1
			s.pc.giveBack()
		}
	}
	return buf
}
