package iogate

import (
	"context"
	"sync/atomic"
)

// Lanes are the way of one export's work through the gate. A nil *Lanes lets
// everything pass, as Kind None does.
type Lanes struct {
	g     *Gate
	name  string
	mute  atomic.Int32 // reads not to be tried without blocking
	lanes [Classes]lane
	users int   // callers of Export that have not called Close; guarded by Gate.mu, as is cell
	cell  *cell // of the lanes' units
}

// lane is one class of work of one export.
type lane struct {
	unit    *unit
	inside  atomic.Int64
	entered atomic.Uint64
	queue   queue // guarded by Gate.mu
}

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

// Close says that a caller of Export needs the lanes no more, and has no call under way
// there. After the last Close the gate forgets the name and its counts, and keeps its
// places for the next export. It is called once for each Export.
func (l *Lanes) Close() {
	if l == nil {
		return
	}
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(l.g.exports, l.name)
		l.cell.exports--
	}
}

func (n *lane) enter() {
	n.unit.inside.Add(1)
	n.inside.Add(1)
	n.entered.Add(1)
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
