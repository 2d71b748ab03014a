// Package throttle bounds how many bytes a second many goroutines move together, and can be changed
// meanwhile.
//
// # How
//
// What passes is a debt, which time pays off at the rate. An operation passes while the debt is less than
// slack, and waits otherwise: the first to come, for the time; those behind it, for their turn. So the
// bytes of any time are those of the rate, and at most slack and one part more. A timer that is late
// costs nothing, as it is made up for within slack.
//
// A token bucket whose waiters have a time each (golang.org/x/time/rate) would not do: they
// keep it when the rate is changed, and at a slow rate the time of the last is hours away.
package throttle

import (
	"context"
	"sync"
	"time"
)

const (
	// Least is the lowest rate, in bytes a second. Less is as much.
	Least = 1024

	// slack, as a share of a second, is how far bytes may be ahead of their time.
	slack = 20
	// parts is how many parts a second's bytes are moved in, at least. One part has minPart bytes at
	// least, which below 32 KiB a second is more than that.
	parts   = 8
	minPart = 4096
)

// Throttle is a bound that is shared. All methods may be called concurrently, also on a nil *Throttle,
// which bounds nothing.
type Throttle struct {
	turn chan struct{} // its holder is the next to pass

	mu      sync.Mutex
	rate    uint64 // bytes a second; 0: no bound
	debt    float64
	at      time.Time     // when debt was right
	changed chan struct{} // closed when the rate is changed
}

// New makes a throttle of so many bytes a second; 0 is no bound.
func New(rate uint64) *Throttle {
	t := &Throttle{turn: make(chan struct{}, 1), changed: make(chan struct{})}
	t.Set(rate)
	return t
}

// Set changes the bound, also for what waits already.
func (t *Throttle) Set(rate uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rate > 0 {
		rate = max(rate, Least)
	}
	t.rate, t.debt, t.at = rate, 0, time.Now() // the debt was that of another rate
	close(t.changed)
	t.changed = make(chan struct{})
}

// Rate is the bound, in bytes a second; 0: there is none.
func (t *Throttle) Rate() uint64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rate
}

// Part is how many of n bytes should be moved at once: all, or what the rate has in an eighth of a second,
// in whole blocks of 4096.
func (t *Throttle) Part(n int) int {
	rate := t.Rate()
	if rate == 0 {
		return n
	}
	return int(min(uint64(n), max(rate/parts/minPart*minPart, minPart)))
}

// Take waits until n bytes may be moved. The error is ctx's.
func (t *Throttle) Take(ctx context.Context, n int) error {
	if t.Rate() == 0 {
		return ctx.Err()
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.turn }()
	for {
		d, changed := t.pass(n)
		if d == 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// pass lets n bytes pass and returns 0, or returns how long to wait.
func (t *Throttle) pass(n int) (time.Duration, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pay(time.Now())
	if t.rate == 0 {
		return 0, nil
	}
	if over := t.debt - float64(t.rate)/slack; over > 0 {
		return time.Duration(over/float64(t.rate)*float64(time.Second)) + 1, t.changed
	}
	t.debt += float64(n)
	return 0, nil
}

// pay lowers the debt by what the time since has paid. t.mu is held.
func (t *Throttle) pay(now time.Time) {
	t.debt = max(t.debt-float64(t.rate)*now.Sub(t.at).Seconds(), 0)
	t.at = now
}
