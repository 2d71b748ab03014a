package oncrpc

import (
	"errors"
	"fmt"
	"time"
)

// This file decides how long a call goes on. A soft call has a patience, counted
// from its beginning, which bounds everything it waits for. Within it, a try
// that got no reply is repeated up to Retries times. What happens while the
// server is away altogether does not count: connections refused, or taken and
// closed again without a word, are no reason to give up a call that may wait.

// patience is how long a call goes on.
func (o *ClientOptions) patience() time.Duration {
	again := int64(max(o.Retries, 0))
	if o.Hard || again >= int64(maxPatience/o.Timeout) {
		return maxPatience
	}
	return o.Timeout * time.Duration(again+1)
}

// dialTries is how many failed dials a call waits for; 0 is no bound but its
// patience. Client.mu is held.
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

// overdue ends a try that got no reply in time, and has the next one wait
// longer. Client.mu is held.
func (c *Client) overdue(pc *call) {
	c.stats.Timeouts++
	pc.timeouts++
	pc.wait = min(pc.wait+c.o.Timeout, max(maxTimeout, c.o.Timeout))
	c.missed(ErrTimeout)
	// The connection may be dead without saying so, and must not get new
	// calls; the others that wait on it keep their chance.
	pc.conn.retire()
	pc.finish(ErrTimeout)
}

// encodeError marks arguments that do not encode: another try would not help.
type encodeError struct{ err error }

func (e *encodeError) Error() string { return e.err.Error() }
func (e *encodeError) Unwrap() error { return e.err }

// mayRepeat reports whether the call may be sent although the server may have
// executed it already.
func (c *Client) mayRepeat(pc *call) bool {
	return !pc.wrote || !pc.once && (pc.proc.Repeatable || c.o.Resend)
}

// again decides whether a call that got no reply is sent again. Version 3 of
// NFS, and good manners, want that on another connection only; a try fails for
// want of its connection, or has retired it.
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
	if pc.sent {
		c.stats.Retransmits++
		pc.retransmits++
	}
	return true
}

// mayGoOn reports whether the call's patience and its tries last for one more.
// Client.mu is held.
func (c *Client) mayGoOn(pc *call, err error) bool {
	switch {
	case c.o.Hard:
		return true
	case c.moment() >= pc.deadline:
		return false
	case pc.unheard && c.dialTries() == 0 && (!pc.wrote || c.o.Retries > 0):
		// The server is away; it is not about this call.
		return true
	case !pc.wrote && !pc.begun && c.dialTries() == 0 && !errors.Is(err, ErrTimeout):
		// It met connections that were dead, of which a restarted server leaves
		// as many as there were.
		return true
	case !pc.wrote && !errors.Is(err, ErrTimeout):
		pc.unsent++
		return pc.unsent < maxUnsentTries
	}
	pc.resends++
	return pc.resends <= c.o.Retries
}

// failure dresses err as what Call returns.
func (pc *call) failure(err error) error {
	switch {
	case !pc.sent:
		return fmt.Errorf("oncrpc: %v: %w: %w", pc.proc, ErrNotSent, err)
	case pc.once || !pc.proc.Repeatable:
		return fmt.Errorf("oncrpc: %v: %w: %w", pc.proc, ErrUnknownOutcome, err)
	}
	return fmt.Errorf("oncrpc: %v: %w", pc.proc, err)
}

// waitFor waits for a dial, as long as the call's context and patience last.
func (c *Client) waitFor(pc *call, a *attempt) error {
	timer := time.NewTimer(pc.deadline - c.moment())
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
