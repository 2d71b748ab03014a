package oncrpc

import (
	"time"
)

// watchSilence has ClientOptions.Silent told of a server that sends nothing, and
// again when it does. Calls pay nothing for it: the clock looks at what is counted
// anyway. Client.mu is held.
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

// Quiet is how long the server has sent nothing although calls wait for it; 0 if none
// does. It may be 10 ms off.
func (c *Client) Quiet() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight == 0 || c.bytesIn.Load() != c.outage.heard {
		return 0
	}
	return c.moment() - c.outage.since
}

// beginSilence begins to count anew when the first call after a rest is made, unless
// the server was silent before. Client.mu is held.
func (c *Client) beginSilence() {
	if !c.outage.told {
		c.outage.since = c.now
	}
}

// givesUp is when the first of the calls under way gives up; zero if none does.
// Client.mu is held.
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

// notify hands a silence on, as tell does with messages. Client.mu is held.
func (c *Client) notify(s Silence) {
	if c.o.Silent != nil {
		c.queue(note{silence: s, silent: true})
	}
}
