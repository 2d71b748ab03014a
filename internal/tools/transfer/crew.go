package transfer

import (
	"sync"
	"time"
)

const (
	// nearby is how long a chunk may take without anybody thinking of distance: with
	// DefaultWindow of the largest ones in flight that is a gigabyte a second.
	nearby = 4 * time.Millisecond
	// queued is how many times as long as the quickest chunk one may take that does
	// not wait for others, but for the distance.
	queued = 2
)

// crew are the goroutines that move the chunks of one file. There are DefaultWindow of
// them at first. Each chunk that comes from afar and has not taken longer for all the
// others that were under way adds one: so their number doubles with each round trip,
// until chunks wait for each other, which is known a round trip late: then there are
// up to four times as many as rate times delay. Of a server that is near they stay
// few, and take little memory.
type crew struct {
	o      *Options
	chunks uint64 // of the file
	work   func() // moves chunks until there are none

	wg       sync.WaitGroup
	mu       sync.Mutex
	size     int
	quickest time.Duration // of a whole chunk
}

// run returns when there is nobody left.
func (c *crew) run() {
	c.size = int(min(uint64(c.o.window()), c.chunks))
	for range c.size {
		c.wg.Go(c.work)
	}
	c.wg.Wait()
}

// moved notes that one of the crew has moved a piece of n bytes since start.
func (c *crew) moved(n uint64, start time.Time) {
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
