package oncrpc

import (
	"errors"
	"io"
)

// join puts pc in the queue of a connection, unless there is none or the best one is
// doubtful. Client.mu is held.
func (c *Client) join(pc *call) (ok bool, doubtful *clientConn) {
	cc := c.pick(pc)
	switch {
	case cc == nil || c.closed:
		return false, nil
	case cc.doubtful():
		return false, cc
	}
	cc.enqueue(pc)
	c.tickOn()
	c.expect(pc)
	pc.replies = c.stats.Replies
	return true, nil
}

// anew forgets the try before. It takes the lock since the clock looks at resting calls.
func (c *Client) anew(pc *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pc.try, pc.unheard = try{}, false
}

// enlist begins a try: it puts pc in the queue of a connection, and waits until there is
// one.
func (c *Client) enlist(pc *call) error {
	c.anew(pc)
	if err := c.pause(pc); err != nil {
		return err
	}
	var last error
	for tries := 0; ; {
		if err := pc.ctx.Err(); err != nil {
			return err
		}
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return ErrClosed
		}
		ok, doubtful := c.join(pc)
		if hungUp := !ok && tries > 0 && last == nil && !c.reached; hungUp { // the server closed it before the call could join
			pc.first++
		}
		if !ok && doubtful == nil && c.attempt == nil {
			c.tickOn() // the dial may take its time, too
			c.begin(metaLane)
		}
		a, most := c.attempt, c.dialTries()
		c.mu.Unlock()
		switch {
		case ok:
			return nil
		case pc.first >= maxFirstTries:
			return noConnection(tries, io.EOF)
		case doubtful != nil:
			doubtful.examine()
			continue
		}
		err := c.waitFor(pc, a)
		tries++
		switch {
		case err == nil && a.err != nil && tries == most:
			return noConnection(tries, a.err)
		case errors.Is(err, ErrTimeout):
			return noConnection(tries, errors.Join(err, last))
		case err != nil:
			return err
		}
		last = a.err
	}
}

// doubtful reports whether the server may have closed cc unnoticed, because no goroutine
// has read from it for a while. Client.mu is held.
func (cc *clientConn) doubtful() bool {
	return cc.led && !cc.reading && cc.calls == 0 && cc.hub.clock()-cc.heard > tickEvery
}

// examine ends cc if the server has closed it, before a call that must not be repeated
// is written to it.
func (cc *clientConn) examine() {
	open := cc.alive()
	h := cc.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case open && !cc.reading:
		cc.heard = h.clock()
	case open:
	case cc.calls == 0:
		cc.fail(lost(io.EOF))
	default:
		cc.retire()
	}
}
