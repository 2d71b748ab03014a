package iogate

import (
	"cmp"
	"slices"
)

// Snapshot is the gate's.
func (g *Gate) Snapshot() Snapshot {
	s := Snapshot{Kind: g.kind, Asked: g.o.Kind, Reason: g.reason, Bound: g.o.Threads, Inside: int(g.inside.Load())}
	if g.pool != nil {
		t := g.pool.b.threads()
		s.Threads, s.Priority, s.Pinned, s.Note = t.n, t.priority, t.pinned, t.note
	}
	s.Hits, s.Misses, s.Untried = g.nowait.counts()
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Waiting = g.queued
	s.Exports = make([]Export, 0, len(g.exports))
	for _, l := range g.exports {
		e := Export{Name: l.name}
		for i := range l.lanes {
			e.Lanes[i] = l.lanes[i].snapshot()
		}
		s.Exports = append(s.Exports, e)
	}
	slices.SortFunc(s.Exports, func(a, b Export) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// snapshot is the lane's. Called with mu held.
func (n *lane) snapshot() Lane {
	c := &n.queue.counts
	return Lane{
		Inside: int(n.inside.Load()), Waiting: n.queue.n, Entered: n.entered.Load(),
		Full: c.full, Late: c.late, Cancelled: c.cancelled, Waits: c.waits, Waited: c.waited,
	}
}
