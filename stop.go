package nfsbox

import (
	"context"
	"time"
)

const (
	// stopPatience is how long a silent server is waited for when the program wants to
	// end (WithStop).
	stopPatience = 2 * time.Second
	// stopEvery is how often giveUp checks for silence.
	stopEvery = 50 * time.Millisecond
)

// WithStop gives up a silent server when the program wants to end, which is when ctx has ended.
// Calls with contexts of their own go on, so that the program can clean up. But if the server
// sends nothing for two seconds from then on, while calls wait for it, these calls fail, and all
// later ones. Close then waits half a second at most for the server.
func WithStop(ctx context.Context) Option {
	return func(o *config) { o.stop = ctx }
}

// watchStop begins giveUp when stop has ended.
func (c *Client) watchStop(stop context.Context) {
	if stop == nil {
		return
	}
	open, closed := context.WithCancel(context.Background())
	c.stop, c.closed = stop, closed
	c.unwatch = context.AfterFunc(stop, func() { c.giveUp(open) })
}

// giveUp waits until the server has been silent for stopPatience, then fails all calls and closes
// the client. It ends early when the client is closed.
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
			_ = c.closeFS() // Close returns the same error
			return
		}
	}
}
