package hands

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// Close ends the run: its queue is removed, so that workers learn that it is over. All that waits
// for a file gets an error. Workers that were at such files remove their temporaries, and Close waits until they have
// taken leave, 15 seconds at most; then Left is how many they could not remove.
func (c *Coordinator) Close() error {
	c.mu.Lock()
	c.over = true
	c.end() // nothing is dealt any more
	for _, b := range c.batches {
		if w := c.workers[b.holder]; w != nil {
			w.owes = true
		}
	}
	c.mu.Unlock()
	c.work.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), leaveTime)
	defer cancel()
	removing, stop := context.WithTimeout(ctx, removeTime)
	defer stop()
	err := c.o.Broker.Remove(removing, c.o.Job)
	if errors.Is(err, queue.ErrLost) {
		err = nil
	}
	if err == nil { // else no worker is heard of either
		c.seeOff(ctx)
	}
	c.hush()
	c.talk.Wait()
	if n := c.Left(); n > 0 {
		c.o.Tell(fmt.Sprintf("%d temporaries of workers could not be removed: the next run of the job does it", n))
	}
	return err
}

// Left is how many temporaries workers could not remove when the run was closed.
func (c *Coordinator) Left() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// seeOff waits until no worker is there that may have temporaries. One that was killed is not waited for.
func (c *Coordinator) seeOff(ctx context.Context) {
	for {
		n, until := c.owing(time.Now())
		if n == 0 {
			return
		}
		waiting, cancel := context.WithDeadline(ctx, until)
		select {
		case <-c.parted:
		case <-waiting.Done():
		}
		cancel()
		if ctx.Err() != nil {
			c.o.Tell(fmt.Sprintf("%d workers have not said that they have removed their temporaries: the next run of the job does it", n))
			return
		}
	}
}

// owing is how many workers have to take leave, and when that has to be looked at again. One that knows that
// the run is over may be silent until it has taken leave.
func (c *Coordinator) owing(now time.Time) (n int, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until = now.Add(leaveTime)
	for _, w := range c.workers {
		end := w.seen.Add(heldFor)
		if !w.owes || !w.told && !end.After(now) {
			continue
		}
		if n++; !w.told && end.Before(until) {
			until = end
		}
	}
	return n, until
}

// signal has whoever waits for an element of ch look, now or when it waits next.
func signal(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
