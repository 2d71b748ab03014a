package oncrpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/xdr"
)

// Exchange is one of the calls of [Client.CallMany]: what goes out, and what
// came of it.
type Exchange struct {
	Proc *xdr.Proc
	Auth Auth
	Args xdr.Appender
	Res  xdr.Unmarshaler

	Reply Reply // as Call returns it
	Err   error

	pc   *call
	over bool // Reply and Err are what they will be
}

// CallMany makes all calls at once and returns when the last is over. Each is
// what [Client.Call] would have made of it, with a Reply of its own to release;
// they may be answered, and executed, in any order.
//
// One goroutine that has many calls to make is served best by this: they leave
// in one write on each connection that takes some, and where that is one, no other
// goroutine is woken for a reply. When fewer slots are free than there are calls,
// those that have one go first. Exchanges may be used again, once their Replies are
// released.
func (c *Client) CallMany(ctx context.Context, xs []Exchange) {
	for i := range xs { // they may have been used before
		xs[i].Reply, xs[i].Err = Reply{}, nil
	}
	for len(xs) > 0 {
		n := c.openMany(ctx, xs)
		c.exchangeMany(xs[:n])
		xs = xs[n:]
	}
}

// openMany opens the first of xs, as many as there are slots for, and returns how
// many; at least one, for which it waits. What cannot be opened has its Err.
func (c *Client) openMany(ctx context.Context, xs []Exchange) int {
	first := &xs[0]
	if first.pc, first.Err = c.openFirst(ctx, first); first.Err != nil {
		return 1
	}
	began := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	first.pc.many = true
	n := 1
	for ; n < len(xs) && n < maxBatch && c.inFlight+c.promised < maxInFlight; n++ {
		x := &xs[n]
		if x.Err = x.Auth.check(); x.Err != nil {
			x.Err = fmt.Errorf("oncrpc: %v: %w: %w", x.Proc, ErrNotSent, x.Err)
			continue
		}
		x.pc = c.issue(ctx, began, x.Proc, x.Auth, x.Args, x.Res)
		x.pc.many = true
	}
	return n
}

func (c *Client) openFirst(ctx context.Context, x *Exchange) (*call, error) {
	err := x.Auth.check()
	var pc *call
	if err == nil {
		pc, err = c.open(ctx, x.Proc, x.Auth, x.Args, x.Res)
	}
	if err != nil {
		return nil, fmt.Errorf("oncrpc: %v: %w: %w", x.Proc, ErrNotSent, err)
	}
	return pc, nil
}

// exchangeMany is exchange for all that were opened: it sends them, and then waits for one
// after the other. While the first waits it reads, and so the replies of the others on its
// connection come in; on other connections the clock starts a reader. Those that are to
// be tried again are sent together.
func (c *Client) exchangeMany(xs []Exchange) {
	for again := true; again; {
		c.sendMany(xs)
		again = false
		for rest := xs; len(rest) > 0; {
			n := c.awaitMany(rest)
			for i := range rest[:n] {
				again = c.settle(&rest[i]) || again
			}
			rest = rest[max(n, 1):]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var times ended
	for i := range xs {
		if x := &xs[i]; x.pc != nil {
			times.and(x.pc.end())
			c.forget(x.pc, x.Err)
			x.pc, x.over = nil, false
		}
	}
	times.observe()
}

// awaitMany waits for the end of the first one's try, and returns how many, from
// the first on, have come to the end of theirs; 0 if the first is not under way.
func (c *Client) awaitMany(xs []Exchange) int {
	if !xs[0].underway() {
		return 0
	}
	_ = c.await(xs[0].pc) // settle looks at it
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 1
	for n < len(xs) && xs[n].underway() && xs[n].pc.idle() {
		c.depart(xs[n].pc)
		n++
	}
	return n
}

func (x *Exchange) underway() bool { return x.pc != nil && x.pc.conn != nil }

// settle looks at how a try has ended, and reports whether there is to be another.
func (c *Client) settle(x *Exchange) bool {
	switch err := x.pc.err; {
	case err == nil:
		x.Reply, x.Err = x.pc.result()
		x.over = true
	case c.again(x.pc, err):
		return true
	default:
		x.fail(c.gaveUp(x.pc, err))
	}
	return false
}

// fail ends a call that has got no reply.
func (x *Exchange) fail(err error) { x.Err, x.over = x.pc.failure(err), true }

// sendMany begins a try of each call that is not over, in as few writes as it can.
// Afterwards those without a connection are over.
func (c *Client) sendMany(xs []Exchange) {
	var away error // there is no connection to be had
	for i := range xs {
		x := &xs[i]
		if x.pc == nil || x.over || x.pc.conn != nil || c.joinNow(x.pc) {
			continue
		}
		writeMany(xs) // the calls queued so far do not wait while this one does
		for x.pc.conn == nil && !x.over {
			err := away
			if err == nil {
				err = c.enlist(x.pc)
			}
			if errors.Is(err, ErrNoConnection) {
				away = err
			}
			if err != nil && !c.again(x.pc, err) {
				x.fail(c.gaveUp(x.pc, err))
			}
		}
	}
	writeMany(xs)
}

// joinNow begins a try if there is a connection for it, and it need not wait.
func (c *Client) joinNow(pc *call) bool {
	if pc.notBefore > 0 && c.clock() < pc.notBefore {
		return false
	}
	c.anew(pc)
	c.mu.Lock()
	defer c.mu.Unlock()
	ok, _ := c.join(pc)
	return ok
}

func writeMany(xs []Exchange) {
	for i := range xs {
		if pc := xs[i].pc; pc != nil && pc.conn != nil {
			pc.write()
		}
	}
}
