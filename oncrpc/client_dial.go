package oncrpc

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"
)

// attempt is one dial, which any number of calls wait for. It goes on when they
// have all left, so that the next one finds a connection.
type attempt struct {
	done chan struct{} // closed at the end
	err  error
}

// connection returns the connection for new calls, and waits until there is one.
func (c *Client) connection(ctx context.Context) (*clientConn, error) {
	for try := 1; ; try++ {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, ErrClosed
		}
		if cc := c.conn; cc != nil {
			c.mu.Unlock()
			return cc, nil
		}
		if c.attempt == nil {
			c.attempt = &attempt{done: make(chan struct{})}
			c.wg.Add(1)
			go c.dial(c.attempt, c.pause())
		}
		a := c.attempt
		c.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if a.err != nil && try >= c.o.DialTries {
			return nil, fmt.Errorf("%w after %d tries, check that the server runs and can be reached at this address and port: %w",
				ErrNoConnection, try, a.err)
		}
	}
}

// pause is how long to wait before the next dial. Client.mu is held.
func (c *Client) pause() time.Duration {
	if c.failures == 0 {
		return 0
	}
	d := backoffMin
	for i := 1; i < c.failures && d < backoffMax; i++ {
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
	if err != nil {
		a.err = err
		c.failures++
		c.stats.DialErrors++
		return
	}
	// It counts as a failure until the first reply: a server that accepts and
	// hangs up must not be called in a tight loop.
	c.failures++
	if c.stats.Dials++; c.stats.Dials > 1 {
		c.stats.Reconnects++
	}
	c.conn = c.attach(nc)
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

// attach begins to use nc. Client.mu is held.
func (c *Client) attach(nc net.Conn) *clientConn {
	window := c.pool.Get(clientReadBuffer)
	cc := &clientConn{c: c, nc: nc, inline: vectored(nc)}
	cc.r = recordReader{src: (*clientSource)(cc), buf: window.B, max: c.o.MaxReply}
	c.conns = append(c.conns, cc)
	c.wg.Add(1)
	go cc.read(window)
	return cc
}

// retire takes no new calls on cc; it is closed when the last of its calls is
// over. Client.mu is held.
func (cc *clientConn) retire() {
	cc.retired = true
	if cc.c.conn == cc {
		cc.c.conn = nil
	}
}

// leave takes pc off the connection. Client.mu is held.
func (cc *clientConn) leave(pc *call) {
	pc.conn = nil
	cc.calls--
	if pc.bulkRes != nil {
		cc.bulks.Add(-1)
	}
	if cc.retired && cc.calls == 0 {
		cc.fail(errRetired)
	}
}

// fail ends the connection and, with it, every try that stands on it. Only the
// first reason counts. Client.mu is held.
func (cc *clientConn) fail(err error) {
	if cc.err != nil {
		return
	}
	c := cc.c
	cc.err = err
	cc.retire()
	c.conns = slices.DeleteFunc(c.conns, func(o *clientConn) bool { return o == cc })
	for _, pc := range c.slots {
		// What is being written is left to the writer, who will know whether
		// the server can have got it.
		if pc != nil && pc.conn == cc && !pc.finished && !pc.batched {
			pc.finish(err)
		}
	}
	if cc.inline {
		_ = cc.nc.Close() // nothing was promised that the error could break
		return
	}
	// TLS says good-bye, and may wait for room to do so.
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		_ = cc.nc.Close() // as above
	}()
}
