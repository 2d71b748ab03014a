package oncrpc

import (
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
)

// tickOn starts the clock unless it is running. Client.mu is held.
func (c *Client) tickOn() {
	if c.ticking {
		return
	}
	c.ticking = true
	c.now = c.clock()
	c.beginSilence()
	if c.timer == nil {
		c.timer = time.AfterFunc(tickEvery, c.tick)
		return
	}
	c.timer.Reset(tickEvery)
}

// tick is the clock. It ends tries that are overdue or whose context has ended, interrupts
// goroutines that use calls that are over, and starts a reader where replies wait for
// one. It runs again after tickEvery while there are calls, and else when it is time to
// close unused connections, before the server does.
func (c *Client) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.now = c.clock()
	c.watchSilence()
	for _, pc := range c.slots {
		if pc == nil || pc.conn == nil {
			continue
		}
		switch {
		case pc.phase == phase.Over:
		case pc.ctx.Err() != nil:
			c.cancelled(pc)
		case c.now > pc.due:
			c.overdue(pc)
		}
		if pc.phase == phase.Over {
			pc.conn.urge(pc)
		}
	}
	c.ticking = c.inFlight > 0
	rest := clientIdle
	for i := len(c.conns) - 1; i >= 0; i-- {
		cc := c.conns[i]
		cc.watchReader()
		if c.watchWriter(cc) {
			c.ticking = true
		} else if cc.calls == 0 {
			left, _ := cc.closeIdle()
			rest = min(rest, max(left, tickEvery))
		}
	}
	switch {
	case c.ticking:
		c.timer.Reset(tickEvery)
	case len(c.conns) > 0:
		c.timer.Reset(rest)
	}
}

// cancelled ends a try whose context has ended. Client.mu is held.
func (c *Client) cancelled(pc *call) {
	c.stats.Cancelled++
	pc.finish(pc.ctx.Err())
}

// watchWriter watches the write under way on cc, and reports whether there is one. It
// interrupts the writer if that is a caller whose own call is over. It starts a reader,
// in case the server waits for its replies to be read. After a time-out it ends a
// connection whose write makes no progress. Client.mu is held.
func (c *Client) watchWriter(cc *clientConn) bool {
	if cc.began == 0 {
		return false
	}
	if cc.writer != nil && cc.writer.phase == phase.Over {
		cc.disturb()
	}
	cc.attend()
	switch {
	case c.now-cc.began <= c.o.Timeout:
	case cc.inline:
		cc.stalled = true
		cc.disturb()
	default:
		cc.fail(lost(errNotReading))
	}
	return true
}
