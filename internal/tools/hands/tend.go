package hands

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// tend looks, until the run ends, for workers that are gone, and for batches that are lost.
func (c *Coordinator) tend() {
	alone := time.Now() // since when no worker takes part, or it was told
	for wait(c.ctx, tendEvery) == nil {
		now := time.Now()
		if c.look(now) > 0 {
			alone = now
		} else if now.Sub(alone) >= lonely {
			alone = now
			c.o.Tell("no worker takes part. On another machine: " + c.o.Allow)
		}
	}
}

// look forgets workers that are gone, and deals again what is lost. It returns how many workers there are.
//
// What a broker has lost nobody claims. So what nobody works at is dealt again when no batch at all was
// claimed for the time of a lease, though workers wait: as long as they claim others it may be waiting for
// its turn. What is dealt twice is worked at once. Without workers one batch shows whether the queue is there.
func (c *Coordinator) look(now time.Time) (workers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range c.workers {
		if now.Sub(w.seen) > goneAfter {
			delete(c.workers, id)
		}
	}
	idle := now.Sub(c.claimed) > queue.LeaseTime
	for _, b := range c.batches {
		switch {
		case b.dealing:
		case b.holder != nil && now.Sub(b.touched) > goneAfter:
			b.holder = nil
			if b.vain >= queue.MaxLeases {
				c.giveUp(b)
			} else {
				c.deal(b)
			}
		case b.holder == nil && idle && now.Sub(b.dealt) > queue.LeaseTime:
			c.deal(b)
			idle = len(c.workers) > 0
		}
	}
	return len(c.workers)
}

// probe deals one batch again that nobody works at. If the broker has lost the queue, that shows it.
func (c *Coordinator) probe() {
	for _, b := range c.batches {
		if b.holder == nil && !b.dealing {
			c.deal(b)
			return
		}
	}
}

// Standing is how a run stands.
type Standing struct {
	Workers int    // that take part
	Batches int    // that are dealt, and not done
	Here    uint64 // files that no worker could work at, and that were worked at here
}

// Standing says how the run stands.
func (c *Coordinator) Standing() Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Standing{len(c.workers), len(c.batches), c.here.Load()}
}

// Job is the run, as the broker has it.
func (c *Coordinator) Job() queue.Job { return c.o.Job }
