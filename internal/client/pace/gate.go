package pace

import (
	"sync"
	"time"
)

// gate admits the calls of one class, as many at once as limit says, in the
// order in which they came.
type gate struct {
	now   func() time.Time
	fixed bool

	mu       sync.Mutex
	limit    int
	inFlight int
	queue    queue
	window   window
	climb    climber
	deaf     int // replies to come that are of calls from before the last cut
	smooth   time.Duration
	waits    uint64
	backOffs uint64
}

func (g *gate) init(limit int, now func() time.Time) {
	g.now = now
	g.fixed = limit != 0
	g.limit = max(limit, 1)
	if !g.fixed {
		g.climb.init(uint32(now().UnixNano()))
		g.limit = g.climb.limit
	}
}

// join admits a call at once and returns nil, or queues it.
func (g *gate) join() *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inFlight < g.limit && g.queue.head == nil {
		g.inFlight++
		return nil
	}
	g.waits++
	return g.queue.push()
}

// admitted takes back the waiter of a call that has taken its token.
func (g *gate) admitted(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue.keep(w)
}

// giveUp takes back a call that waits, or that was admitted just now.
func (g *gate) giveUp(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.queued {
		g.queue.remove(w)
	} else {
		<-w.token
		g.inFlight--
		g.admit()
	}
	g.queue.keep(w)
}

// admit lets in the calls that the limit allows.
func (g *gate) admit() {
	for g.inFlight < g.limit && g.queue.head != nil {
		w := g.queue.head
		g.queue.remove(w)
		g.inFlight++
		w.token <- struct{}{} // there is room: a waiter gets one
	}
}

// leave ends a call, learns from it, and lets in others. far is true once, when it is
// known that the server is far away.
func (g *gate) leave(took time.Duration, bytes int, o Outcome) (far bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	far = g.learn(took, bytes, o)
	g.admit()
	return far
}

// widen lets more calls of a class begin at once that has made none yet.
func (g *gate) widen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if limit := g.climb.widen(); !g.fixed && limit != g.limit {
		g.set(limit)
		g.admit()
	}
}

// learn takes in how a call has ended. far is as in leave.
func (g *gate) learn(took time.Duration, bytes int, o Outcome) (far bool) {
	old, deaf := g.window.skip > 0, g.deaf > 0
	if old {
		g.window.skip--
	}
	if deaf {
		g.deaf--
	}
	switch {
	case o == OK && g.climb.opening && g.open(took, bytes):
	case o == OK && !old:
		g.measure(took, bytes)
	case o == Busy && !deaf && !g.fixed:
		g.cut(busyCut)
	case o == Timeout && !deaf && !g.fixed:
		g.cut(timeoutCut)
	}
	return o == OK && g.climb.far()
}

// open is what a reply from afar does before anything has been measured: it lets one
// more call in if others wait, and has taken no longer for all that were under way. So
// the limit doubles with each round trip, as TCP's does in slow start. It is false if
// the reply is for the window.
func (g *gate) open(took time.Duration, bytes int) bool {
	limit := g.climb.open(took, workOf(bytes), g.kept())
	if limit == g.limit {
		return false
	}
	g.set(limit)
	return true
}

// measure adds a reply to the window, and sets the next limit if the window is
// full.
func (g *gate) measure(took time.Duration, bytes int) {
	w := &g.window
	if !w.open {
		w.start(g.now(), g.limit)
		return
	}
	if !w.add(load{g.limit, g.inFlight, g.kept()}, took, bytes) {
		return
	}
	now := g.now()
	if !w.full(now, g.limit, g.climb.least()) && !g.alarm(now) {
		return
	}
	g.smooth = w.took / time.Duration(w.n)
	if g.fixed {
		g.window = window{}
		return
	}
	g.set(g.climb.next(w.sample(now, g.limit)))
}

// kept reports whether calls wait for the limit.
func (g *gate) kept() bool { return g.queue.head != nil }

// alarm ends a window early that is far off the usual, so that a change of the
// server's is followed soon. The window after it is a full one.
func (g *gate) alarm(now time.Time) bool {
	w, c := &g.window, &g.climb
	if g.fixed || w.n < minReplies || now.Sub(w.began) < searchTime {
		return false
	}
	s := w.sample(now, g.limit)
	return c.odd == 0 && c.outside(s.cost, s.lat) != 0
}

// cut lowers the limit because of a refusal. Those that follow from the same
// calls do not count again.
func (g *gate) cut(factor float64) {
	g.backOffs++
	g.set(g.climb.cut(factor))
	g.deaf = g.inFlight
}

// set begins a window. Replies of calls that were made under another limit do not
// belong to it.
func (g *gate) set(limit int) {
	g.window = window{}
	if limit != g.limit {
		g.window.skip = g.inFlight
	}
	g.limit = limit
}

func (g *gate) snapshot() Snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Snapshot{
		Limit:    g.limit,
		InFlight: g.inFlight,
		Waiting:  g.queue.n,
		Waits:    g.waits,
		BackOffs: g.backOffs,
		Smooth:   g.smooth,
	}
}
