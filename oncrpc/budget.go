package oncrpc

import "sync"

// budget bounds the memory of requests that are being received or held, over
// all connections.
//
// A request takes from it as it arrives, so that a sender who announces much
// and sends nothing holds nothing. But then requests half received could hold
// everything and all wait for more. So one of them at a time may overdraw the
// budget, up to the longest record: it can always be completed, executed and
// given back. Those that hold something already come before those that begin.
type budget struct {
	mu        sync.Mutex
	free      int64 // below zero while overdrawn
	overdrawn *allowance
	started   []*allowance // who wait, in order, holding something already
	fresh     []*allowance // who wait, in order, holding nothing
}

// allowance is what one request holds of a budget.
type allowance struct {
	held  int64
	want  int64         // with ready: what it waits for
	ready chan struct{} // closed when that was given
}

// take raises what a holds to n bytes, and waits until that is possible. It
// answers false if stop is closed before.
func (b *budget) take(a *allowance, n int64, stop <-chan struct{}) bool {
	b.mu.Lock()
	more := n - a.held
	if more <= 0 || b.fits(a, more) {
		b.give(a, max(more, 0))
		b.mu.Unlock()
		return true
	}
	a.want, a.ready = more, make(chan struct{})
	if a.held > 0 {
		b.started = append(b.started, a)
	} else {
		b.fresh = append(b.fresh, a)
	}
	b.mu.Unlock()
	select {
	case <-a.ready:
		return true
	case <-stop:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = without(b.started, a)
	b.fresh = without(b.fresh, a)
	return false
}

// put gives back all that a holds.
func (b *budget) put(a *allowance) {
	if a.held == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += a.held
	a.held = 0
	if b.overdrawn == a {
		b.overdrawn = nil
	}
	b.started = b.serve(b.started)
	if len(b.started) == 0 {
		b.fresh = b.serve(b.fresh)
	}
}

// fits reports whether a may have more bytes now; whoever waits already goes
// first. b.mu is held.
func (b *budget) fits(a *allowance, more int64) bool {
	if a == b.overdrawn {
		return true
	}
	if a.held == 0 {
		return more <= b.free && len(b.started) == 0 && len(b.fresh) == 0
	}
	return len(b.started) == 0 && b.affords(a, more)
}

// affords is fits without the queue: b.mu is held.
func (b *budget) affords(a *allowance, more int64) bool {
	return more <= b.free || (a.held > 0 && b.overdrawn == nil)
}

// give moves more bytes to a. b.mu is held.
func (b *budget) give(a *allowance, more int64) {
	if more > b.free {
		b.overdrawn = a
	}
	b.free -= more
	a.held += more
}

// serve gives to the first of queue what they wait for, and answers the rest.
func (b *budget) serve(queue []*allowance) []*allowance {
	for len(queue) > 0 && b.affords(queue[0], queue[0].want) {
		a := queue[0]
		b.give(a, a.want)
		close(a.ready)
		queue[0] = nil
		queue = queue[1:]
	}
	return queue
}

func without(queue []*allowance, a *allowance) []*allowance {
	for i, o := range queue {
		if o == a {
			return append(queue[:i], queue[i+1:]...)
		}
	}
	return queue
}

// held is how many bytes are out.
func (b *budget) outstanding(limit int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return limit - b.free
}
