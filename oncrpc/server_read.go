package oncrpc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/budget"
)

// This file reads calls, and starts each. Back pressure is not reading: see window and
// admit.

// serverSource is a serverConn as the reader's source of bytes.
type serverSource serverConn

// Read reads from the connection. Before it can block it sends the replies that the
// reader itself has given.
func (s *serverSource) Read(p []byte) (int, error) {
	sc := (*serverConn)(s)
	sc.flushOwn()
	for again := false; ; again = true {
		nc, err := sc.setDeadline(again)
		if err != nil {
			return 0, err
		}
		n, err := nc.Read(p)
		if n > 0 {
			sc.s.stats.bytesIn.Add(uint64(n))
			sc.bytesIn.Add(uint64(n))
			if sc.receiving != nil {
				sc.receiving.Got.Add(int64(n))
			}
			sc.arrived = sc.s.clock()
			return n, nil
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := sc.expired(); err != nil {
			return 0, err
		}
	}
}

// setDeadline sets the deadline of one read: the record's, or between records that of an
// idle connection.
func (sc *serverConn) setDeadline(again bool) (net.Conn, error) {
	now := time.Now()
	until := now.Add(sc.s.o.IdleTimeout)
	if !sc.r.idle() {
		if sc.began.IsZero() {
			sc.began = now
		}
		until = sc.began.Add(sc.s.o.HeadTimeout + time.Duration(sc.r.have()/leastRate)*time.Second)
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.err != nil {
		return nil, sc.err
	}
	if sc.draining.Load() {
		return nil, errDraining
	}
	if !again {
		sc.active = now
	}
	return sc.nc, sc.nc.SetReadDeadline(until)
}

// expired says why a read whose deadline has passed ends the connection; nil: it does not,
// since the client waits for replies, or has waited until lately.
func (sc *serverConn) expired() error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case sc.err != nil:
		return sc.err
	case sc.draining.Load():
		return errDraining
	case !sc.r.idle():
		return errSlow
	case sc.calls > 0 || time.Since(sc.active) < sc.s.o.IdleTimeout:
		return nil
	}
	return errIdle
}

// readCalls reads calls and starts them until the connection is over.
func (sc *serverConn) readCalls() error {
	for {
		if !sc.await(sc.window()) {
			return errConnGone
		}
		sc.began, sc.receiving = time.Time{}, nil
		if err := sc.r.begin(); err != nil {
			return ifEnd(err, errCutMessage)
		}
		c := sc.s.newCall(sc)
		c.Remote, c.Local, c.State = sc.remote, sc.local, sc.state
		rec := sc.s.pool.Get(min(sc.r.left, smallRecord))
		rec.B = rec.B[:0]
		var err error
		if c.rec, err = sc.r.rest(&sc.s.pool, rec, c); err == nil {
			if c.allowance.Held() {
				c.allowance.Whole.Store(true)
			}
			err = sc.start(c)
		} else {
			c.free()
		}
		if err != nil {
			return err
		}
	}
}

// window is how many calls of the connection may be under way when one more is read.
func (sc *serverConn) window() int {
	if sc.s.underWay.Load() >= int64(sc.s.o.MaxCalls) {
		return 0
	}
	return sc.s.o.MaxCallsPerConn - 1
}

// await waits until at most n calls are under way. It returns false if the connection is
// over.
func (sc *serverConn) await(n int) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.calls > n {
		// Some replies may wait for this goroutine, the reader, to send them.
		sc.mu.Unlock()
		sc.flush()
		sc.mu.Lock()
	}
	for sc.calls > n {
		sc.fewer.Wait()
	}
	return sc.err == nil
}

// start decodes the head of a request. It answers c, or hands it to a worker. An error ends
// the connection. In any case c belongs to the caller no longer.
func (sc *serverConn) start(c *Call) error {
	c.arrived = sc.arrived
	proc, err := c.decode()
	if err != nil && !isAnswer(err) {
		c.free()
		return err
	}
	if err == nil && c.Auth.Flavor == AuthTLS {
		return sc.startTLS(c, proc)
	}
	if err != nil || c.handler == nil {
		sc.begun()
		c.conclude(err)
		return nil
	}
	if c.once.is {
		c.once.client, c.once.serial = sc.client, sc.serial
	}
	sc.begin(c)
	return nil
}

// admit takes the memory that a growing request may need: from the budget of all clients,
// or from that of the clients that are not admitted. The time that it waits does not count
// against the sender.
func (c *Call) admit(n int) error {
	sc := c.to.(*serverConn)
	if c.allowance.Held() {
		return nil // that is all that it may come to need
	}
	sc.flush()
	by := sc.memory
	if !sc.s.admits(sc.state) {
		by = sc.strangerMemory
	}
	c.allowance.From, c.allowance.Since = sc, sc.arrived
	waited, ok := by.Take(&c.allowance, budget.Room(n), sc.stop)
	if !ok {
		return errDraining
	}
	if waited && !sc.began.IsZero() { // else all so far came from the buffer, and no read has begun
		sc.began = sc.began.Add(sc.s.clock() - sc.arrived)
	}
	sc.receiving = &c.allowance
	return nil
}

// TooSlow closes the connection: others wait for the memory of what it sends.
func (sc *serverConn) TooSlow() { sc.fail(errSlow) }

var _ admitter = (*Call)(nil)

// startTLS answers an AUTH_TLS probe (RFC 9289, section 4.1): a NULL call without a body in
// credential and verifier. The client may send nothing more before the handshake.
func (sc *serverConn) startTLS(c *Call, proc uint32) error {
	deny := func(stat AuthStat) error {
		sc.begun()
		c.conclude(&DeniedError{Stat: AuthRejected, Auth: stat})
		return nil
	}
	switch {
	case sc.s.o.Secure == nil || sc.secured:
		return deny(AuthRejectedCred)
	case proc != 0 || len(c.Auth.Body) != 0:
		return deny(AuthBadCred)
	case c.Verf.Flavor != AuthNone || len(c.Verf.Body) != 0:
		return deny(AuthBadVerf)
	case sc.r.r != sc.r.w:
		// Else bytes of an attacker would count as sent under TLS.
		c.free()
		return errEarlyData
	}
	sc.begun()
	c.replyStartTLS()
	reply := c.reply
	c.free()
	sc.enqueue(reply)
	sc.flush()
	if !sc.await(0) {
		return errConnGone
	}
	return sc.secure()
}

// secure runs the handshake. It may take as long as a request (HeadTimeout).
func (sc *serverConn) secure() error {
	if err := sc.nc.SetDeadline(time.Now().Add(sc.s.o.HeadTimeout)); err != nil {
		return err
	}
	nc, err := sc.s.o.Secure(sc.nc)
	if err != nil {
		return fmt.Errorf("securing the connection: %w", err)
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return err
	}
	sc.secured = true
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.nc = nc
	return sc.err
}
