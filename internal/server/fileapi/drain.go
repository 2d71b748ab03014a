package fileapi

import (
	"sync/atomic"
	"time"
)

// drain is the time between the beginning of a Shutdown and the server's end. Calls whose
// clients go on are waited for. A client that sends or takes next to nothing has drainIdle
// instead of Limits.Idle, also for what it is waited for already.
type drain struct {
	begun atomic.Bool
}

// hurry begins the drain.
func (a *admission) hurry() {
	a.drain.begun.Store(true) // waits that begin from now on are short
	for _, p := range a.pacers() {
		p.hurry()
	}
}

// pacers are those of the calls in progress.
func (a *admission) pacers() (under []*pacer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := a.first; c != nil; c = c.next {
		if p := c.pacer.Load(); p != nil {
			under = append(under, p)
		}
	}
	return under
}

// busy reports whether a call is in progress.
func (a *admission) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls > 0
}

// looks is how often a drain looks for calls within drainIdle.
const looks = 6

// drained waits for ended, the end of http.Server's own Shutdown, which waits for connections.
// When there has been no call for drainIdle, it closes those that are left. Before, it closes those
// of HTTP/2 whose clients do not take the end of a stream either.
func (s *Server) drained(ended <-chan error) error {
	tick := time.NewTicker(drainIdle / looks)
	defer tick.Stop()
	for quiet := 0; ; {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
		for _, p := range s.admit.pacers() {
			p.cut()
		}
		if quiet++; s.admit.busy() {
			quiet = 0
		}
		if quiet == looks {
			_ = s.http.Close() // the listeners are closed, and nothing is lost with these connections
		}
	}
}
