package oncrpc

import (
	"errors"
	"fmt"
	"time"
)

// This file decides how long a call goes on. A soft call has a patience, counted from its
// beginning, which bounds everything it waits for. Within it a try without a reply is
// repeated, however often connections are lost. Four things end a call sooner:
//
//   - It must not be sent twice, and was sent (ErrUnknownOutcome).
//   - ClientOptions.Retries is negative: there is no second try.
//   - The server has never answered any call: DialTries failed dials, or maxFirstTries
//     connections that it closed, are the end.
//   - The server breaks the protocol twice in the same way (conn_end.go). That ends a
//     hard call, too.

// dialTries is how many failed dials a call waits for; 0: its patience alone bounds them.
// Client.mu is held.
func (c *Client) dialTries() int {
	switch {
	case c.reached && (c.o.Hard || c.o.DialTries == 0):
		return 0
	case c.o.DialTries == 0:
		return DefaultDialTries
	}
	return c.o.DialTries
}

// expect says when the try that begins now times out. Client.mu is held.
func (c *Client) expect(pc *call) {
	pc.due = min(c.now+pc.wait, pc.deadline) + tickEvery
}

// overdue ends a try that got no reply in time. The next try waits longer. Client.mu is
// held.
func (c *Client) overdue(pc *call) {
	c.stats.Timeouts++
	pc.timeouts++
	pc.wait = min(pc.wait+c.o.Timeout, max(maxTimeout, c.o.Timeout))
	c.missed(ErrTimeout)
	// The connection may be dead without a sign, and gets no new calls. Calls that
	// wait on it may still be answered.
	pc.conn.retire()
	pc.finish(ErrTimeout)
}

// mayRepeat reports whether the call may be sent although the server may have
// executed it already.
func (c *Client) mayRepeat(pc *call) bool {
	return !pc.wrote || !pc.once && (pc.proc.Repeatable || c.o.Resend)
}

// again decides whether a call that got no reply is sent again. NFS version 4 (RFC 8881,
// section 2.9.2) forbids that on the same connection, and so do we always: a try that has
// failed has lost its connection, or has retired it.
func (c *Client) again(pc *call, err error) bool {
	if pc.ctx.Err() != nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrNoConnection) {
		return false
	}
	if _, ok := errors.AsType[*encodeError](err); ok || !c.mayRepeat(pc) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayGoOn(pc, err) {
		return false
	}
	if pc.sends > 0 {
		c.stats.Retransmits++
		pc.retransmits++
	}
	return true
}

// mayGoOn reports whether the call's patience lasts for one more try, and notes when that
// may begin. Client.mu is held.
func (c *Client) mayGoOn(pc *call, err error) bool {
	now := c.clock()
	switch pc.count(); {
	case pc.breached(), !c.reached && foreign(err): // which would say so again
		return false
	case c.o.Hard:
	case now >= pc.deadline, pc.wrote && c.o.Retries < 0:
		return false
	case !c.reached && !errors.Is(err, ErrTimeout):
		if pc.first++; pc.first >= maxFirstTries {
			return false
		}
	}
	pc.notBefore = now + c.rest(pc, err, pc.deadline-now)
	return true
}

// count adds the breach with which the try ended, if there was one, to those before. A
// call that was not written whole could not have caused it. Client.mu is held.
func (pc *call) count() {
	switch {
	case pc.breach == nil || !pc.wrote:
		return
	case !errors.Is(pc.breach, pc.broken):
		pc.broken, pc.breaches, pc.near = pc.breach, 0, 0
	}
	if pc.mine {
		pc.breaches++
	} else {
		pc.near++
	}
	pc.breach = nil
}

// breached reports whether the reply breaks the protocol in the same way each time.
func (pc *call) breached() bool {
	return pc.breaches >= maxBreaches || pc.near >= maxNearBreaches
}

// rest is how long a call that has lost its connection waits for its next try. It does
// not wait the first time, nor while the server answers no call: then the dials have
// their pauses. A call that loses one connection after the other while others are
// answered may be why the server hangs up, and must not take down connections in a tight
// loop. Calls that were lost together come back one by one, spread by their numbers, so
// that those without fault get through. None waits for more than half of its remaining
// patience. Client.mu is held.
func (c *Client) rest(pc *call, err error, left time.Duration) time.Duration {
	if pc.unheard && pc.near == 0 || errors.Is(err, ErrTimeout) {
		return 0
	}
	pc.lost++
	d := backoff(pc.lost - 1)
	d += d / spread * time.Duration(pc.xid%spread)
	return min(d, left/2)
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

// gaveUp adds to err, with which the last try ended, why there is no further try, unless
// err itself says so.
func (c *Client) gaveUp(pc *call, err error) error {
	switch {
	case pc.breached():
		return fmt.Errorf("%w, %d times in the same way: %w", ErrBadReply, pc.breaches+pc.near, err)
	case foreign(err):
		return fmt.Errorf("%w: %w", ErrBadReply, err)
	case c.o.Hard || c.clock() < pc.deadline || errors.Is(err, ErrTimeout) || errors.Is(err, ErrNoConnection):
		return err
	case pc.ctx.Err() != nil || !c.mayRepeat(pc):
		return err
	}
	return fmt.Errorf("%w: %w", ErrTimeout, err)
}

// failure is err as Call returns it: with the procedure, and whether the server may have
// executed the call.
func (pc *call) failure(err error) error {
	switch {
	case pc.sends == 0:
		return fmt.Errorf("oncrpc: %v: %w: %w", pc.proc, ErrNotSent, err)
	case pc.once || !pc.proc.Repeatable:
		return fmt.Errorf("oncrpc: %v: %w: %w", pc.proc, ErrUnknownOutcome, err)
	}
	return fmt.Errorf("oncrpc: %v: %w", pc.proc, err)
}

// pause waits until the call's next try may begin.
func (c *Client) pause(pc *call) error {
	if pc.notBefore == 0 {
		return nil // nearly always; the clock is not read
	}
	left := pc.notBefore - c.clock()
	if left <= 0 {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-pc.ctx.Done():
		return pc.ctx.Err()
	case <-c.ctx.Done():
		return ErrClosed
	}
}

// waitFor waits for a dial, as long as the call's context and patience last.
func (c *Client) waitFor(pc *call, a *attempt) error {
	timer := time.NewTimer(pc.deadline - c.clock())
	defer timer.Stop()
	select {
	case <-a.done:
		return nil
	case <-pc.ctx.Done():
		return pc.ctx.Err()
	case <-timer.C:
		return ErrTimeout
	}
}

// noConnection is the error of a call for which no connection could be had.
func noConnection(tries int, err error) error {
	return fmt.Errorf("%w after %d tries, check that the server runs and can be reached at this address and port: %w",
		ErrNoConnection, tries, err)
}
