package iogate

import (
	"sync/atomic"
	"time"
)

// cell is what is kept for the lanes of one export; or of several, if there are
// more exports than can have something kept for each.
//
// A place is free for a unit if more are free than the other units lack of what
// is kept for them. Then, always, as many are free as all units lack together,
// and a unit that has not used up what is kept finds a place, whatever the others
// hold. The numbers are read one by one while others come and go without a lock.
// It is sound because each of them errs to the same side: a call that enters counts
// in the gate before it counts in its unit, and one that leaves the other way round, so
// that a unit never seems to lack less than it does; and a call that might have been
// refused for that is found by the look at the queue that follows.
type cell struct {
	units   [Classes]unit
	exports int // whose lanes they are; guarded by Gate.mu
}

type unit struct {
	kept   int64 // guarded by Gate.mu
	inside atomic.Int64
}

// lacks is what the unit has not used of what is kept for it.
func (u *unit) lacks() int64 { return max(0, u.kept-u.inside.Load()) }

// lane is one class of work of one export.
type lane struct {
	unit    *unit
	inside  atomic.Int64
	entered atomic.Uint64
	queue   queue // guarded by Gate.mu
}

func (n *lane) enter() {
	n.unit.inside.Add(1)
	n.inside.Add(1)
	n.entered.Add(1)
}

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
