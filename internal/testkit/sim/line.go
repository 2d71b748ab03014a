package sim

import (
	"context"
	"sync"
	"time"
)

// Line is a link with a delay, over which bytes go one after another. It keeps the time of a
// testing/synctest bubble. Its methods may be called concurrently.
type Line struct {
	mu        sync.Mutex
	delay     time.Duration
	bandwidth float64   // bytes per second
	busy      time.Time // until then bytes of others are on it
}

// NewLine returns a line that delays each call, and carries bandwidth bytes per second.
func NewLine(delay time.Duration, bandwidth float64) *Line {
	return &Line{delay: delay, bandwidth: bandwidth}
}

// Pass takes as long as n bytes and the call around them, or until ctx ends.
func (l *Line) Pass(ctx context.Context, n int) error {
	l.mu.Lock()
	now := time.Now()
	if l.busy.Before(now) {
		l.busy = now
	}
	l.busy = l.busy.Add(time.Duration(float64(n) / l.bandwidth * 1e9))
	wait := l.busy.Sub(now) + l.delay
	l.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// SetDelay changes the delay of the calls that begin afterwards.
func (l *Line) SetDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}
