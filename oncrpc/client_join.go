package oncrpc

import (
	"context"
	"errors"
	"io"

	"github.com/nfsbox/nfsbox/xdr"
)

// open takes a slot, with a number that no other call has, and puts the call in
// the queue of a connection if there is one. Without a free slot it waits.
func (c *Client) open(ctx context.Context, p *xdr.Proc, auth Auth, args xdr.Appender, res xdr.Unmarshaler, once bool) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight+c.promised >= maxInFlight {
		if err := c.waitForSlot(ctx); err != nil {
			return nil, err
		}
	}
	pc := c.takeSlot()
	pc.counters = c.counters(p)
	pc.ctx, pc.proc, pc.auth, pc.args, pc.res, pc.once = ctx, p, auth, args, res, once
	pc.bulkArgs, _ = args.(xdr.BulkArgs)
	pc.bulkRes, _ = res.(xdr.BulkResult)
	pc.longest = c.maxReply
	if a, ok := args.(xdr.Asker); ok {
		pc.longest += int(min(a.Asks(), maxSkipped))
	}
	pc.began, pc.deadline, pc.wait = began, began+c.patience, c.o.Timeout
	c.stats.Calls++
	if once {
		c.questions++
	}
	c.join(pc)
	return pc, nil
}

// takeSlot takes the next number whose slot is free. Client.mu is held.
func (c *Client) takeSlot() *call {
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
	return pc
}

// waitForSlot waits until a slot is free, in order of arrival. Client.mu is held, but not
// while it waits.
func (c *Client) waitForSlot(ctx context.Context) error {
	c.outside++
	c.mu.Unlock()
	var err error
	select {
	case <-c.room:
		c.mu.Lock()
	case <-ctx.Done():
		err = ctx.Err()
		c.mu.Lock()
		if c.outside > 0 {
			c.outside--
			return err
		}
		<-c.room // the slot was promised meanwhile
	}
	c.promised--
	if err != nil {
		c.promise()
	}
	return err
}

// promise gives a free slot to a caller that waits for one. Client.mu is held.
func (c *Client) promise() {
	if c.outside > 0 {
		c.outside--
		c.promised++
		c.room <- struct{}{} // there is room: fewer slots are promised than there are
	}
}

// done counts a call that has ended, and frees its slot. Its number is used again only
// after all others, so that a late reply finds no call.
func (c *Client) done(pc *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pc.counters != nil {
		pc.counters.count(pc, err)
	}
	c.slots[pc.xid%slotCount] = nil
	if pc.once {
		c.questions--
	}
	*pc = call{wake: pc.wake}
	c.free = append(c.free, pc)
	c.inFlight--
	c.promise()
}

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
			return noConnection(tries, hungUp{})
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
	open := cc.socket.Alive()
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
