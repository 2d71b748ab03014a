package oncrpc

import (
	"context"
	"log/slog"
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
