package sim

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until somebody moves it. It serves the
// code whose clock reaches a disk or a wire; timers and time-outs are tested
// with testing/synctest, so a Clock has none. All methods may be called
// concurrently.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now is the time that the clock shows. It has the type of time.Now.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d. A negative d sets it back, as an administrator
// or a time server may.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
