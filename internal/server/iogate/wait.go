package iogate

import (
	"context"
	"time"
)

// enter is Enter for a call that finds others waiting, or the places that are for all taken.
func (g *Gate) enter(ctx context.Context, n *lane, name string) error {
	g.mu.Lock()
	if g.closing != nil {
		g.mu.Unlock()
		return ErrClosed
	}
	// Counted before looking: a call that leaves after the look sees it, and looks too.
	g.waiting.Add(1)
	if n.queue.n == 0 && g.takeFor(n.unit) {
		g.waiting.Add(-1)
		n.enter()
		g.mu.Unlock()
		return nil
	}
	if !g.room(&n.queue, name) {
		g.waiting.Add(-1)
		n.queue.counts.full++
		g.mu.Unlock()
		return ErrFull
	}
	w := g.push(n, name)
	g.mu.Unlock()
	return g.wait(ctx, w)
}

// room says whether one more of the client called name may wait in q.
func (g *Gate) room(q *queue, name string) bool {
	most := g.o.Queue
	if q.clients[name] != nil {
		most -= most / lastShare
	}
	return g.queued < most
}

func (g *Gate) wait(ctx context.Context, w *waiter) error {
	var err error
	select {
	case <-w.ready:
		err = w.err
	case <-ctx.Done():
		err = g.giveUp(w, &w.lane.queue.counts.cancelled, ctx.Err())
	case <-w.timer.C:
		err = g.giveUp(w, &w.lane.queue.counts.late, ErrFull)
	}
	w.timer.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.spare) < maxSpare {
		g.spare = append(g.spare, w)
	}
	return err
}

// giveUp takes w out of the queue and counts it. If its turn has come meanwhile it has the
// place: refusing it now would help no other call.
func (g *Gate) giveUp(w *waiter, count *uint64, err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.client == nil {
		<-w.ready // sent before mu was released
		return w.err
	}
	g.pull(w)
	*count++
	return err
}

// look lets in every waiter that can be, and ends Close's waiting. It says whether the gate
// is closed, or closing.
func (g *Gate) look() (closing bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admit()
	if g.closing == nil {
		return false
	}
	if g.inside.Load() == 0 {
		g.closed()
	}
	return true
}

// admit lets in every waiter that can be, lanes by turns. Called with mu held.
func (g *Gate) admit() {
	for refused := 0; refused < len(g.turn); {
		n := g.turn[0]
		if !g.takeFor(n.unit) {
			refused++
			g.rotate()
			continue
		}
		refused = 0
		w := n.queue.next.first
		n.queue.next = n.queue.next.next
		g.rotate()
		g.pull(w)
		n.enter()
		n.queue.counts.wait(time.Since(w.since))
		w.ready <- struct{}{}
	}
}

// rotate makes the lane whose turn it is the last one.
func (g *Gate) rotate() {
	n := g.turn[0]
	copy(g.turn, g.turn[1:])
	g.turn[len(g.turn)-1] = n
}

// dismiss sends away all waiters. Called with mu held.
func (g *Gate) dismiss() {
	for len(g.turn) > 0 {
		w := g.turn[0].queue.next.first
		g.pull(w)
		w.err = ErrClosed
		w.ready <- struct{}{}
	}
	if g.inside.Load() == 0 {
		g.closed()
	}
}

// closed tells Close that the last one has left. Called with mu held.
func (g *Gate) closed() {
	select {
	case <-g.closing:
	default:
		close(g.closing)
	}
}
