package iogate

import (
	"slices"
	"time"
)

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
