package oncrpc

import (
	"context"

	"github.com/nfsbox/nfsbox/xdr"
)

// open takes a slot, with a number that no other call has, and puts the call in
// the queue of a connection if there is one. Without a free slot it waits.
func (c *Client) open(ctx context.Context, p *xdr.Proc, auth Auth, args xdr.Appender, res xdr.Unmarshaler) (*call, error) {
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
	pc.ctx, pc.proc, pc.auth, pc.args, pc.res = ctx, p, auth, args, res
	pc.bulkArgs, _ = args.(xdr.BulkArgs)
	pc.bulkRes, _ = res.(xdr.BulkResult)
	pc.began, pc.deadline, pc.wait = began, began+c.patience, c.o.Timeout
	c.stats.Calls++
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
	*pc = call{wake: pc.wake}
	c.free = append(c.free, pc)
	c.inFlight--
	c.promise()
}
