package nfsbox

import (
	"context"
	"time"
)

const (
	// stopPatience is how long a server may send nothing, while calls wait for it, when
	// the program wants to end (WithStop).
	stopPatience = 2 * time.Second
	// stopEvery is how often that is looked at.
	stopEvery = 50 * time.Millisecond
)

// WithStop says when the program wants to end: when ctx has ended. Calls that have
// contexts of their own go on, so that the program can clean up behind itself; but a
// server that sends nothing for two seconds from then on, while calls wait for it, is
// given up: they fail, and all that come. Close then waits for the server half a second
// at most.
func WithStop(ctx context.Context) Option {
	return func(o *config) { o.stop = ctx }
}

// watchStop gives the server up when stop has ended and it does not answer.
func (c *Client) watchStop(stop context.Context) {
	if stop == nil {
		return
	}
	open, closed := context.WithCancel(context.Background())
	c.stop, c.closed = stop, closed
	c.unwatch = context.AfterFunc(stop, func() { c.giveUp(open) })
}

// giveUp waits until the server has been quiet for stopPatience, and gives it up; or
// until the client is closed.
func (c *Client) giveUp(open context.Context) {
	began := time.Now()
	tick := time.NewTicker(stopEvery)
	defer tick.Stop()
	for {
		select {
		case <-open.Done():
			return
		case <-tick.C:
		}
		if min(c.conn.Quiet(), time.Since(began)) >= stopPatience {
			c.conn.Abandon()
			_ = c.closeFS() // Close says the same
			return
		}
	}
}
