package oncrpc

import (
	"context"
	"log/slog"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/phase"
)

// missed notes that the server did not answer, and logs it at once. Client.mu is held.
func (c *Client) missed(why error) {
	e := &c.episode
	if e.since == 0 {
		e.since = c.clock()
	}
	if !e.told {
		e.told = true
		c.tell(slog.LevelWarn, "server not responding, still trying", why)
	}
}

// away notes that the server is out of reach, and logs it after awayQuietly. Client.mu is
// held.
func (c *Client) away(why error) {
	e := &c.episode
	if e.since == 0 {
		e.since = c.clock()
	} else if c.clock()-e.since >= awayQuietly {
		c.missed(why)
	}
}

// answered notes that the server has answered. Client.mu is held.
func (c *Client) answered() {
	c.stats.Replies++
	c.reached, c.failures = true, 0
	if c.episode.since == 0 {
		return
	}
	if c.episode.told {
		c.tell(slog.LevelInfo, "server OK", nil)
	}
	c.episode.since, c.episode.told = 0, false
}

// tell queues a message for the log. Client.mu is held.
func (c *Client) tell(level slog.Level, text string, why error) {
	if c.o.Log == nil {
		return
	}
	n := note{level: level, text: text}
	n.attrs[0] = slog.String("server", c.server)
	if why != nil {
		n.attrs[1] = slog.Any("cause", why)
	}
	c.queue(n)
}

// queue hands a message to the goroutine that delivers them, in order and without
// waiting. Above maxNotes it is dropped. Client.mu is held.
func (c *Client) queue(n note) {
	e := &c.episode
	if c.closed || len(e.notes) == maxNotes {
		return
	}
	e.notes = append(e.notes, n)
	if !e.teller {
		e.teller = true
		c.wg.Add(1)
		go c.tellAll()
	}
}

// tellAll delivers the messages: the log and Silent may take their time.
func (c *Client) tellAll() {
	defer c.wg.Done()
	for {
		c.mu.Lock()
		e := &c.episode
		if len(e.notes) == 0 {
			e.teller = false
			c.mu.Unlock()
			return
		}
		n := e.notes[0]
		e.notes = e.notes[1:]
		c.mu.Unlock()
		if n.silent {
			c.o.Silent(n.silence)
			continue
		}
		attrs := n.attrs[:]
		if n.attrs[1].Key == "" {
			attrs = attrs[:1]
		}
		c.o.Log.LogAttrs(context.Background(), n.level, n.text, attrs...)
	}
}

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
		*s = outage{heard: came, since: c.now, next: c.now + SilentAfter}
	case !c.awaits():
		c.beginSilence()
	case c.now >= s.next:
		s.told = true
		until := c.givesUp()
		s.next = c.now + maxPatience
		if !until.IsZero() { // if calls still wait then, later ones have another end
			s.next = max(c.now, until.Sub(c.born)) + SilentAfter
		}
		c.notify(Silence{Server: c.server, Since: c.born.Add(s.since), Until: until})
	}
}

// awaits reports whether a call is under way that is no question. Client.mu is held.
func (c *Client) awaits() bool { return c.inFlight > c.questions }

// Quiet is how long the server has sent nothing while calls wait for it; 0 if no call
// waits. Questions (CallOnce) do not count. It may be 10 ms off.
func (c *Client) Quiet() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.awaits() || c.bytesIn.Load() != c.outage.heard {
		return 0
	}
	return c.clock() - c.outage.since
}

// beginSilence counts anew from the first call after a rest. A server that was silent
// before still is, but that call waits SilentAfter as well before it is told of. Client.mu
// is held.
func (c *Client) beginSilence() {
	s := &c.outage
	s.next = c.now + SilentAfter
	if !s.told {
		s.since = c.now
	}
}

// givesUp is when the first call under way gives up; zero if none does. Questions do not
// count. Client.mu is held.
func (c *Client) givesUp() (first time.Time) {
	for _, pc := range c.slots {
		if pc == nil || pc.phase == phase.Over || pc.once {
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
