package sim

import (
	"sync"
	"time"
)

// Clock is a clock that moves only when a test moves it. It is for code that writes times to a
// disk or a wire. Timers and time-outs are tested with testing/synctest, so a Clock has none.
// All methods may be called concurrently.
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

// Advance moves the clock by d. A negative d sets it back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
