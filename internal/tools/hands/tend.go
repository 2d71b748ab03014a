package hands

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/base/wait"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// tend looks, until the run ends, for workers that are gone, and for batches that are lost.
func (c *Coordinator) tend() {
	alone := time.Now() // since when no worker takes part, or it was told
	for wait.For(c.ctx, tendEvery) == nil {
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
// its turn. What is dealt twice is worked at once. Without workers the job's description, which is put back again and
// again, shows whether the queue is there. While nobody at all is heard of, no batch is taken from its holder.
func (c *Coordinator) look(now time.Time) (workers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range c.workers {
		if now.Sub(w.seen) > goneAfter {
			delete(c.workers, id)
		}
	}
	workers = len(c.workers)
	if (workers == 0 || c.refused) && now.Sub(c.announced) >= putBackEvery {
		c.announce()
	}
	idle := workers > 0 && now.Sub(c.claimed) > queue.LeaseTime
	silent := now.Sub(c.heard) >= silence
	for _, b := range c.batches {
		switch {
		case b.dealing || b.held() && silent:
		case b.held() && now.After(b.lostAt()):
			b.holder = workerID{}
			if b.vain >= queue.MaxLeases {
				c.giveUp(b)
			} else {
				c.deal(b)
			}
		case !b.held() && idle && now.Sub(b.dealt) > queue.LeaseTime:
			c.deal(b)
		}
	}
	return workers
}

// lostAt is when a batch is dealt again, unless its holder is heard of: earlier where the broker has it no more.
func (b *batch) lostAt() time.Time {
	if b.unqueued {
		return b.touched.Add(heldFor)
	}
	return b.touched.Add(goneAfter)
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
