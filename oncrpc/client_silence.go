package oncrpc

import (
	"time"
)

// watchSilence tells ClientOptions.Silent of a server that sends nothing, and again when
// it sends. Calls pay nothing for it: the clock looks at what is counted anyway.
// Client.mu is held.
func (c *Client) watchSilence() {
	s := &c.outage
	came := c.bytesIn.Load()
	switch {
	case came != s.heard:
		if s.told {
			c.notify(Silence{Server: c.server, Since: c.born.Add(s.since), Over: true})
		}
		*s = outage{heard: came, since: c.now}
	case !s.told && c.inFlight > 0 && c.now-s.since >= SilentAfter:
		s.told = true
		c.notify(Silence{Server: c.server, Since: c.born.Add(s.since), Until: c.givesUp()})
	}
}

// Quiet is how long the server has sent nothing while calls wait for it; 0 if no call
// waits. It may be 10 ms off.
func (c *Client) Quiet() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight == 0 || c.bytesIn.Load() != c.outage.heard {
		return 0
	}
	return c.clock() - c.outage.since
}

// beginSilence counts anew from the first call after a rest, unless the server was silent
// before. Client.mu is held.
func (c *Client) beginSilence() {
	if !c.outage.told {
		c.outage.since = c.now
	}
}

// givesUp is when the first call under way gives up; zero if none does. Client.mu is held.
func (c *Client) givesUp() (first time.Time) {
	for _, pc := range c.slots {
		if pc == nil || pc.phase == over {
			continue
		}
		at, bounded := pc.ctx.Deadline()
		if !c.o.Hard {
			if end := c.born.Add(pc.deadline); !bounded || end.Before(at) {
				at, bounded = end, true
			}
		}
		if bounded && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// notify queues a silence for ClientOptions.Silent. Client.mu is held.
func (c *Client) notify(s Silence) {
	if c.o.Silent != nil {
		c.queue(note{silence: s, silent: true})
	}
}
