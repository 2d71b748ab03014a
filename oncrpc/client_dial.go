package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"
)

// attempt is one dial, which any number of calls wait for. It goes on when they
// have all left, so that the next one finds a connection.
type attempt struct {
	lane lane
	done chan struct{} // closed at the end
	err  error
}

// join puts pc in the queue of a connection, if there is one that is beyond
// doubt. Client.mu is held.
func (c *Client) join(pc *call) (ok bool, doubtful *clientConn) {
	cc := c.pick(pc)
	switch {
	case cc == nil || c.closed:
		return false, nil
	case cc.doubtful():
		return false, cc
	}
	cc.enqueue(pc)
	return true, nil
}

// anew forgets the try before. The clock looks at calls that rest, too.
func (c *Client) anew(pc *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pc.try, pc.unheard = try{}, false
}

// enlist begins a try: it puts pc in the queue of a connection, and waits until
// there is one.
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
		if hungUp := !ok && tries > 0 && last == nil && !c.reached; hungUp { // before the call could join
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

// doubtful reports whether the server may have closed cc without anybody having
// noticed: nobody has read from it for a while. Client.mu is held.
func (cc *clientConn) doubtful() bool {
	return cc.led && !cc.reading && cc.calls == 0 && cc.c.moment()-cc.heard > tickEvery
}

// examine ends cc if the server has closed it, before a call is written to it
// that must not be repeated.
func (cc *clientConn) examine() {
	open := cc.alive()
	c := cc.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case open && !cc.reading:
		cc.heard = c.moment()
	case open:
	case cc.calls == 0:
		cc.fail(lost(io.EOF))
	default:
		cc.retire()
	}
}

// begin dials. Client.mu is held.
func (c *Client) begin(l lane) {
	c.attempt = &attempt{lane: l, done: make(chan struct{})}
	c.wg.Add(1)
	go c.dial(c.attempt, backoff(c.failures))
}

// backoff is the pause after so many failures in a row.
func backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	d := backoffMin
	for i := 1; i < failures && d < backoffMax; i++ {
		d *= 2
	}
	return min(d, backoffMax)
}

// dial makes one connection, after a pause.
func (c *Client) dial(a *attempt, pause time.Duration) {
	defer c.wg.Done()
	nc, err := c.dialAfter(pause)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(a.done)
	c.attempt = nil
	if err == nil && c.closed {
		err = ErrClosed
		_ = nc.Close() // nobody has used it
	}
	alone := !slices.ContainsFunc(c.conns, func(cc *clientConn) bool { return !cc.retired })
	if alone {
		// It counts as a failure until the first reply: a server that accepts
		// and hangs up must not be called in a tight loop.
		c.failures++
		a.lane = metaLane
	}
	if err != nil {
		a.err = err
		c.stats.DialErrors++
		if !alone {
			c.cannotGrow()
		} else if c.reached {
			c.away(err)
		}
		return
	}
	c.stats.Dials++
	if alone && c.stats.Dials > 1 {
		c.stats.Reconnects++
		c.tell(slog.LevelDebug, "connected again", nil)
	}
	if a := nc.RemoteAddr(); a != nil {
		c.server = a.String()
	}
	c.attach(nc, a.lane)
}

func (c *Client) dialAfter(pause time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(c.ctx, pause+dialTimeout)
	defer cancel()
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	nc, err := c.o.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if t, ok := nc.(*net.TCPConn); ok {
		if err := t.SetNoDelay(!c.o.nagle); err != nil {
			_ = nc.Close() // the first error is the one to tell
			return nil, err
		}
	}
	if c.o.Secure == nil {
		return nc, nil
	}
	secured, err := c.o.Secure(ctx, nc)
	if err != nil {
		_ = nc.Close() // the first error is the one to tell
		return nil, fmt.Errorf("securing the connection: %w", err)
	}
	return secured, nil
}
