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
	users int   // how many have asked Export for them, and not called Close; guarded by Gate.mu, as is cell
	cell  *cell // of the lanes' units
}

// lane is one class of work of one export.
type lane struct {
	unit    *unit
	inside  atomic.Int64
	entered atomic.Uint64
	queue   queue // guarded by Gate.mu
}

// Enter waits for a place in the lane of class c; Leave gives it back. client
// has the place: one that has many waiting does not hold up one that has few.
// The error is ErrFull, ErrClosed, or that of ctx.
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

// TryEnter takes a place if there is one for the lane and nobody waits for it. It does
// not wait, and so may be called by who holds what others wait for.
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

// Close says that one who has asked Export for the lanes needs them no more, and
// has nothing under way there. When all have, the gate forgets the name and what
// was counted, and what was kept for it is for the next export. It is called once
// for each Export.
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
