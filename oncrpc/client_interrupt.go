package oncrpc

import (
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/bufpool"
)

// This file makes callers leave. A caller who is cancelled, or whose try has
// timed out, may not return while a reader or a writer of the connection still
// borrows its buffers, and a peer that stands still must not hold it there. So
// the read or the write under way is interrupted with a deadline in the past;
// who was interrupted gives back what the callers want back, resets the
// deadline and carries on with the stream where it was.

// past is a deadline that has gone by.
var past = time.Unix(1, 0)

// lost wraps what ended a connection.
func lost(err error) error { return fmt.Errorf("connection lost: %w", err) }

// urge makes the reader and the writer give pc back. Client.mu is held.
func (cc *clientConn) urge(pc *call) {
	if pc.reading {
		// An error means that the connection is closed: the read ends anyway.
		_ = cc.nc.SetReadDeadline(past)
	}
	if pc.writing {
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
	cc.began = c.now
	done := cc.out.written()
	for i := range cc.sending {
		s := &cc.sending[i]
		if s.cut < 0 || !s.pc.finished {
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
	if self == nil || c.closed || !self.wantsOut() {
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
	if cc.push(nil) {
		cc.flush(nil)
	}
}

// wantsOut reports whether the caller of pc waits for nothing but to return.
// Client.mu is held.
func (pc *call) wantsOut() bool { return pc.finished || pc.ctx.Err() != nil }

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

// tickOn starts the clock, unless it is running. Client.mu is held.
func (c *Client) tickOn() {
	if c.ticking {
		return
	}
	c.ticking = true
	c.now, c.idleSince = time.Now(), time.Time{}
	if c.timer == nil {
		c.timer = time.AfterFunc(tickEvery, c.tick)
		return
	}
	c.timer.Reset(tickEvery)
}

// tick ends the tries that are overdue, and urges whoever holds on to calls
// that are over. It runs again as long as there are calls, and once when there
// have been none for long.
func (c *Client) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.now = time.Now()
	for _, pc := range c.slots {
		if pc == nil || pc.conn == nil {
			continue
		}
		if pc.finished {
			pc.conn.urge(pc)
		} else if c.now.After(pc.due) {
			c.stats.Timeouts++
			// The connection may be dead without saying so, and must not get
			// new calls; the others that wait on it keep their chance.
			pc.conn.retire()
			pc.finish(ErrTimeout)
		}
	}
	c.ticking = c.inFlight > 0
	for i := len(c.conns) - 1; i >= 0; i-- {
		if c.conns[i].watchWriter() {
			c.ticking = true
		}
	}
	if c.ticking {
		c.timer.Reset(tickEvery)
	} else {
		c.rest()
	}
}

// rest waits for the time to close connections that nobody uses: before the
// server does, perhaps just when a call that must not be repeated is on its
// way. Client.mu is held.
func (c *Client) rest() {
	if c.idleSince.IsZero() {
		c.idleSince = c.now
	}
	if left := clientIdle - c.now.Sub(c.idleSince); left > 0 {
		c.timer.Reset(left)
		return
	}
	for len(c.conns) > 0 {
		c.conns[0].fail(errIdle)
	}
}

// watchWriter frees a caller from writing for others when its own call is
// over, and looks after writes that make no headway. It reports whether there
// is a write to watch. Client.mu is held.
func (cc *clientConn) watchWriter() bool {
	if cc.began.IsZero() {
		return false
	}
	if cc.writer != nil && cc.writer.wantsOut() {
		cc.disturb()
	}
	switch {
	case cc.c.now.Sub(cc.began) <= cc.c.o.Timeout:
	case cc.inline:
		cc.stalled = true
		cc.disturb()
	default:
		cc.fail(lost(errNotReading))
	}
	return true
}
