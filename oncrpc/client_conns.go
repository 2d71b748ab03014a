package oncrpc

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

// This file makes, chooses and closes connections. A client with several keeps file data on lanes of its
// own: a LOOKUP never waits behind megabytes in our queue, a socket's buffer or the
// server's. All lanes share one sequence of numbers and one slot table. A call whose
// connection was lost, or on which it timed out, goes to the connection that is best then.
//
// Connections are added one by one, in the background, for a lane that has none or is
// busy (busyMeta, busyBulk). No call waits for them: while its lane has no connection,
// any other will do. Those unused for laneIdle are closed again.

// lanes is how many connections lane l may have.
func (c *Client) lanes(l lane) int {
	meta := max(1, c.o.Conns/4)
	if l == metaLane {
		return meta
	}
	return c.o.Conns - meta
}

// laneOf is the lane that pc belongs to.
func (c *Client) laneOf(pc *call) lane {
	if c.o.Conns > 1 && pc.bulky() {
		return bulkLane
	}
	return metaLane
}

// bulky reports whether the call moves file data, in either direction.
func (r *request) bulky() bool {
	return r.bulkRes != nil || r.bulkArgs != nil && len(r.bulkArgs.Bulk()) > inlineBulk
}

// pick returns the connection for pc: of its lane if that has any, the one with the
// fewest calls; nil if there is none at all. Client.mu is held.
func (c *Client) pick(pc *call) *clientConn {
	var best *clientConn
	l, n := c.laneOf(pc), 0
	for _, cc := range c.conns {
		if cc.retired {
			continue
		}
		if cc.lane == l {
			n++
		}
		if best == nil || cc.fits(l, best) {
			best = cc
		}
	}
	if best != nil && c.o.Conns > 1 && n < c.lanes(l) && (n == 0 || best.busy()) {
		c.grow(l)
	}
	return best
}

// fits reports whether cc is better for a call of lane l than o.
func (cc *clientConn) fits(l lane, o *clientConn) bool {
	if (cc.lane == l) != (o.lane == l) {
		return cc.lane == l
	}
	return cc.calls < o.calls
}

// busy reports whether another connection beside this one would help.
func (cc *clientConn) busy() bool {
	if cc.lane == bulkLane {
		return cc.calls >= busyBulk
	}
	return cc.calls >= busyMeta
}

// grow dials one more connection in the background. Client.mu is held.
func (c *Client) grow(l lane) {
	if c.attempt == nil && c.growAfter <= c.now {
		c.begin(l)
	}
}

// spare reports whether the client can do without cc: it needs one connection for
// metadata. Client.mu is held.
func (cc *clientConn) spare() bool {
	if cc.lane == bulkLane {
		return true
	}
	for _, o := range cc.hub.conns {
		if o != cc && o.lane == metaLane && !o.retired {
			return true
		}
	}
	return false
}

// closeIdle closes cc if it was unused for long, and else says how long that takes.
// Client.mu is held.
func (cc *clientConn) closeIdle() (left time.Duration, closed bool) {
	most := clientIdle
	if cc.spare() {
		most = laneIdle
	}
	left = most - (cc.hub.now - cc.idle)
	if left > 0 {
		return left, false
	}
	cc.fail(errIdle)
	return 0, true
}

// begin starts a dial for lane l. Client.mu is held.
func (c *Client) begin(l lane) {
	c.attempt = &attempt{lane: l, done: make(chan struct{})}
	c.wg.Add(1)
	go c.dial(c.attempt, backoff(c.failures))
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
