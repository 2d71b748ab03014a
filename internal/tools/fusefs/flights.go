//go:build linux

package fusefs

import (
	"sync"
	"time"
)

// flights are the requests under way. One clock for all looks at them, every watchEvery while there are some: a goroutine
// for each would cost more than a small request does.
type flights struct {
	mu      sync.Mutex
	calls   []*call
	ticking bool
	timer   *time.Timer
}

func (f *flights) add(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.place = len(f.calls)
	f.calls = append(f.calls, c)
	switch {
	case f.ticking:
		return
	case f.timer == nil:
		f.timer = time.AfterFunc(watchEvery, f.tick)
	default:
		f.timer.Reset(watchEvery)
	}
	f.ticking = true
}

func (f *flights) closing(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.closes = true
}

// remove ends the watch over c, whose channel will be another request's.
func (f *flights) remove(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := len(f.calls) - 1
	moved := f.calls[last]
	f.calls[c.place], moved.place = moved, c.place
	f.calls[last], f.calls = nil, f.calls[:last]
}

// tick looks at all requests. Those that were interrupted, and processes that close for long, get a goroutine each: to read
// a process' state may take a while.
func (f *flights) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for _, c := range f.calls {
		select {
		case <-c.cancel:
			c.cancel = nil
			go c.interrupted()
		default:
		}
		if c.closes && now.Sub(c.now) >= grace {
			c.closes = false
			go c.watchClose()
		}
	}
	if f.ticking = len(f.calls) > 0; f.ticking {
		f.timer.Reset(watchEvery)
	}
}

// interrupted ends a request that the kernel has interrupted: at once if its process dies, else after grace.
func (c *call) interrupted() {
	defer c.finish()
	over := time.NewTimer(grace)
	defer over.Stop()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for !killed(c.pid) {
		select {
		case <-c.Done():
			return
		case <-over.C:
			return
		case <-tick.C:
		}
	}
}

// watchClose ends a FLUSH that has taken grace, if its process is on its way out.
func (c *call) watchClose() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if out, bySignal := exiting(c.pid); out && (bySignal || time.Since(c.now) > exitPatience) {
			c.finish()
			return
		}
		select {
		case <-c.Done():
			return
		case <-tick.C:
		}
	}
}
