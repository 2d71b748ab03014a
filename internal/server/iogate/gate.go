package iogate

import (
	"sync"
	"sync/atomic"
)

// Gate is one process' way to its disks.
type Gate struct {
	o      Options
	kind   Kind   // in force
	reason string // why it is not Options.Kind
	pool   *pool  // makes the data calls; nil: the caller does
	nowait nowait

	// What the fast path looks at. It is open while no call waits and fewer than fast
	// are inside: a call that enters then takes no place that is kept for others.
	inside  atomic.Int64
	fast    atomic.Int64
	waiting atomic.Int64 // in the queue, and 1 more while Close waits

	mu      sync.Mutex
	exports map[string]*Lanes // guarded by mu, as all below
	cells   []*cell
	turn    []*lane // lanes in which calls wait, next in turn first
	queued  int
	spare   []*waiter
	closing chan struct{} // closed with the last one inside, once Close is called
}

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
