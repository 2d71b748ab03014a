package transfer

import (
	"sync"
	"time"
)

const (
	// nearby is how long a chunk of a near server takes at most. With DefaultWindow of the
	// largest chunks in flight that is a gigabyte a second.
	nearby = 4 * time.Millisecond
	// queued times the quickest chunk's time is the most that a chunk takes which waits for
	// the distance alone. One that takes longer has waited for other chunks.
	queued = 2
)

// workers are the goroutines that move the chunks of one file, DefaultWindow at first. A
// chunk from a far server that has not waited for other chunks adds one. So their number
// doubles with each round trip, until chunks wait for each other. That shows a round trip
// late: there are then up to four times as many as the rate times the delay. With a near
// server they stay few, and take little memory.
type workers struct {
	o      *Options
	chunks uint64 // of the file
	work   func() // moves chunks until there are none

	wg       sync.WaitGroup
	mu       sync.Mutex
	size     int
	quickest time.Duration // of a whole chunk
}

// run returns when all of them have ended.
func (c *workers) run() {
	c.size = int(min(uint64(c.o.window()), c.chunks))
	for range c.size {
		c.wg.Go(c.work)
	}
	c.wg.Wait()
}

// moved notes that a worker has moved a piece of n bytes since start.
func (c *workers) moved(n uint64, start time.Time) {
	if c.o.Window > 0 || n < c.o.chunk() {
		return
	}
	took := time.Since(start)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quickest == 0 || took < c.quickest {
		c.quickest = took
	}
	if took <= nearby || took > queued*c.quickest || c.size >= MaxWindow || uint64(c.size) >= c.chunks || !c.o.Budget.ample() {
		return
	}
	c.size++
	c.wg.Go(c.work)
}
