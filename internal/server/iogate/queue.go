package iogate

import (
	"slices"
	"time"
)

// queue holds the waiters of one lane: clients by turns, and each client's waiters
// in the order in which they came. All is guarded by Gate.mu.
type queue struct {
	clients map[string]*client
	next    *client   // a ring
	idle    []*client // to be used again
	n       int
	counts  counts
}

// counts are what has happened in the lane's queue.
type counts struct {
	full, late, cancelled uint64
	waited                time.Duration
	waits                 [WaitBuckets]uint64
}

// client is a client with calls that wait in a lane.
type client struct {
	name        string
	first, last *waiter
	prev, next  *client
}

// waiter waits for a place.
type waiter struct {
	lane       *lane
	client     *client // nil once out of the queue
	prev, next *waiter
	since      time.Time
	err        error         // why there is no place; set before ready
	ready      chan struct{} // has room for one
	timer      *time.Timer
}

// push puts a new waiter at the end of its client's queue.
func (g *Gate) push(n *lane, name string) *waiter {
	w := g.fresh()
	w.lane, w.since, w.err = n, time.Now(), nil
	q := &n.queue
	c := q.clients[name]
	if c == nil {
		c = q.join(name)
	}
	w.client, w.prev = c, c.last
	if c.last == nil {
		c.first = w
	} else {
		c.last.next = w
	}
	c.last = w
	if q.n == 0 {
		g.turn = append(g.turn, n)
	}
	q.n++
	g.queued++
	return w
}

func (g *Gate) fresh() *waiter {
	if i := len(g.spare) - 1; i >= 0 {
		w := g.spare[i]
		g.spare = g.spare[:i]
		w.timer.Reset(g.o.Patience)
		return w
	}
	return &waiter{ready: make(chan struct{}, 1), timer: time.NewTimer(g.o.Patience)}
}

func (g *Gate) pull(w *waiter) {
	c, q := w.client, &w.lane.queue
	if w.prev == nil {
		c.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		c.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.client, w.prev, w.next = nil, nil, nil
	if c.first == nil {
		q.part(c)
	}
	if q.n--; q.n == 0 {
		i := slices.Index(g.turn, w.lane)
		g.turn = slices.Delete(g.turn, i, i+1)
	}
	g.queued--
	g.waiting.Add(-1)
}

// join puts a new client where its turn comes last.
func (q *queue) join(name string) *client {
	if q.clients == nil {
		q.clients = make(map[string]*client)
	}
	var c *client
	if i := len(q.idle) - 1; i >= 0 {
		c, q.idle = q.idle[i], q.idle[:i]
	} else {
		c = new(client)
	}
	c.name = name
	q.clients[name] = c
	if q.next == nil {
		c.prev, c.next, q.next = c, c, c
		return c
	}
	c.next, c.prev = q.next, q.next.prev
	c.prev.next, c.next.prev = c, c
	return c
}

// part takes out a client of which no call waits any more.
func (q *queue) part(c *client) {
	delete(q.clients, c.name)
	c.prev.next, c.next.prev = c.next, c.prev
	switch {
	case c.next == c:
		q.next = nil
	case q.next == c:
		q.next = c.next
	}
	*c = client{}
	if len(q.idle) < maxSpare {
		q.idle = append(q.idle, c)
	}
}

// wait counts one that got its place after d.
func (c *counts) wait(d time.Duration) {
	c.waited += d
	i := 0
	for i < WaitBuckets-1 && d >= WaitBound(i) {
		i++
	}
	c.waits[i]++
}
