package oncrpc

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

// begin starts a dial for lane l. Client.mu is held.
func (c *Client) begin(l lane) {
	c.attempt = &attempt{lane: l, done: make(chan struct{})}
	c.wg.Add(1)
	go c.dial(c.attempt, backoff(c.failures))
}

// backoff is the pause after that many failures in a row.
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

// dial makes one connection after a pause, and ends the attempt.
func (c *Client) dial(a *attempt, pause time.Duration) {
	defer c.wg.Done()
	nc, err := c.dialAfter(pause)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(a.done)
	c.attempt = nil
	if err == nil && c.closed {
		err = ErrClosed
		_ = nc.Close() // it was not used
	}
	alone := !slices.ContainsFunc(c.conns, func(cc *clientConn) bool { return !cc.retired })
	if alone {
		// It counts as a failure until the first reply: a server that accepts and hangs
		// up must not be dialed in a tight loop.
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

// ended logs the end of cc. If it has brought no reply, growth is put off. Client.mu is
// held.
func (c *Client) ended(cc *clientConn, why error) {
	c.tell(slog.LevelDebug, "connection closed", why)
	if !cc.spoke {
		c.cannotGrow()
	}
}

// cannotGrow puts off further growth: the server takes no more connections, or
// hangs up on them. Client.mu is held.
func (c *Client) cannotGrow() { c.growAfter = c.clock() + growPause }
