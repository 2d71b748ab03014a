package iogate

import "context"

// Enter waits for a place in the lane of class c; Leave gives it back. The place is client's:
// a client with many waiting calls does not hold up one with few. The error is ErrFull,
// ErrClosed, or that of ctx.
func (l *Lanes) Enter(ctx context.Context, c Class, client string) error {
	if err := ctx.Err(); err != nil || l == nil {
		return err
	}
	g, n := l.g, &l.lanes[c]
	if g.waiting.Load() != 0 || !g.take(g.fast.Load()) {
		return g.enter(ctx, n, client)
	}
	n.enter()
	// Calls that have come meanwhile saw the place taken, but not which call has it; and Close
	// may not have seen it at all.
	if g.waiting.Load() != 0 && g.look() {
		g.leave(n)
		return ErrClosed
	}
	return nil
}

// TryEnter takes a place if one is free for the lane and no call waits for it. It does not
// wait, so that a caller may hold what others wait for.
func (l *Lanes) TryEnter(c Class) bool {
	if l == nil {
		return true
	}
	g, n := l.g, &l.lanes[c]
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing != nil || n.queue.n > 0 || !g.take(g.fast.Load()) && !g.takeFor(n.unit) {
		return false
	}
	n.enter()
	return true
}

// Leave gives back the place that Enter gave.
func (l *Lanes) Leave(c Class) {
	if l == nil {
		return
	}
	l.g.leave(&l.lanes[c])
}

// leave gives back a place. The order matters: see cell.
func (g *Gate) leave(n *lane) {
	n.inside.Add(-1)
	n.unit.inside.Add(-1)
	g.inside.Add(-1)
	if g.waiting.Load() != 0 {
		g.look()
	}
}
