package oncrpc

import (
	"time"
)

// tickOn starts the clock, unless it is running. Client.mu is held.
func (c *Client) tickOn() {
	if c.ticking {
		return
	}
	c.ticking = true
	c.now = c.moment()
	c.beginSilence()
	if c.timer == nil {
		c.timer = time.AfterFunc(tickEvery, c.tick)
		return
	}
	c.timer.Reset(tickEvery)
}

// tick ends the tries that are overdue and those whose callers want to leave, urges
// goroutines that hold on to calls that are over, and has replies read that nobody reads. It
// runs again as long as there are calls, and after that when it is time to close
// connections that nobody uses: before the server does.
func (c *Client) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.now = c.moment()
	c.watchSilence()
	for _, pc := range c.slots {
		if pc == nil || pc.conn == nil {
			continue
		}
		switch {
		case pc.phase == over:
		case pc.ctx.Err() != nil:
			c.cancelled(pc)
		case c.now > pc.due:
			c.overdue(pc)
		case pc.many && pc.sentAt > 0 && c.now-pc.sentAt > tickEvery:
			pc.conn.attend()
		}
		if pc.phase == over {
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

// cancelled ends a try because its caller wants to leave. Client.mu is held.
func (c *Client) cancelled(pc *call) {
	c.stats.Cancelled++
	pc.finish(pc.ctx.Err())
}

// watchWriter frees a caller from writing for others when its own call is
// over, and looks after writes that make no headway: it has somebody read, in
// case the server waits for that, and in the end gives up. It reports whether
// there is a write to watch. Client.mu is held.
func (c *Client) watchWriter(cc *clientConn) bool {
	if cc.began == 0 {
		return false
	}
	if cc.writer != nil && cc.writer.phase == over {
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
