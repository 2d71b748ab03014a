package pace

import (
	"sync"
	"time"
)

// turns admits the calls of one class, as many at once as limit says, in the order in which they
// come.
type turns struct {
	now   func() time.Time
	fixed bool

	mu       sync.Mutex
	limit    int
	inFlight int
	queue    queue
	window   window
	climb    climber
	deaf     int // replies to come of calls from before the last cut: their refusals do not count
	smooth   time.Duration
	waits    uint64
	backOffs uint64
}

func (t *turns) init(limit int, now func() time.Time) {
	t.now = now
	t.fixed = limit != 0
	t.limit = max(limit, 1)
	if !t.fixed {
		t.climb.init(uint32(now().UnixNano()))
		t.limit = t.climb.limit
	}
}

// setMax changes the limit, or has it found.
func (t *turns) setMax(limit int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.climb, t.deaf = climber{}, 0
	if t.fixed = limit != 0; !t.fixed {
		t.climb.init(uint32(t.now().UnixNano()))
		limit = t.climb.limit
	}
	t.set(max(limit, 1))
	t.admit()
}

// join admits a call at once and returns nil, or queues it.
func (t *turns) join() *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inFlight < t.limit && t.queue.head == nil {
		t.inFlight++
		return nil
	}
	t.waits++
	return t.queue.push()
}

// admitted takes back the waiter of a call that has taken its token.
func (t *turns) admitted(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.keep(w)
}

// giveUp takes back a call that waits, or that was admitted just now.
func (t *turns) giveUp(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.queued {
		t.queue.remove(w)
	} else {
		<-w.token
		t.inFlight--
		t.admit()
	}
	t.queue.keep(w)
}

// admit lets in the calls that the limit allows.
func (t *turns) admit() {
	for t.inFlight < t.limit && t.queue.head != nil {
		w := t.queue.head
		t.queue.remove(w)
		t.inFlight++
		w.token <- struct{}{} // there is room: a waiter gets one
	}
}

// leave ends a call, learns from it, and lets in others. far is true once, when a reply shows that
// the server is far away.
func (t *turns) leave(took time.Duration, bytes int, o Outcome) (far bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	far = t.learn(took, bytes, o)
	t.admit()
	return far
}

// widen lets more calls begin at once in a class that has had no reply yet.
func (t *turns) widen() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit := t.climb.widen(); !t.fixed && limit != t.limit {
		t.set(limit)
		t.admit()
	}
}

// learn takes in the outcome of a call. far is as in leave.
func (t *turns) learn(took time.Duration, bytes int, o Outcome) (far bool) {
	old, deaf := t.window.skip > 0, t.deaf > 0
	if old {
		t.window.skip--
	}
	if deaf {
		t.deaf--
	}
	switch {
	case o == OK && t.climb.opening && t.open(took, bytes):
	case o == OK && !old:
		t.measure(took, bytes)
	case o == Busy && !deaf && !t.fixed:
		t.cut(busyCut)
	case o == Timeout && !deaf && !t.fixed:
		t.cut(timeoutCut)
	}
	return o == OK && t.climb.far()
}

// open takes a reply from a far server before the first search. If calls wait, and the reply took
// no longer with all that were under way, one more call may be. So the limit doubles with each
// round trip, as TCP's does in slow start. open returns false if the reply is for the window.
func (t *turns) open(took time.Duration, bytes int) bool {
	limit := t.climb.open(took, workOf(bytes), t.kept())
	if limit == t.limit {
		return false
	}
	t.set(limit)
	return true
}

// measure adds a reply to the window, and sets the next limit if the window is
// full.
func (t *turns) measure(took time.Duration, bytes int) {
	w := &t.window
	if !w.open {
		w.start(t.now(), t.limit)
		return
	}
	if !w.add(load{t.limit, t.inFlight, t.kept()}, took, bytes) {
		return
	}
	now := t.now()
	if !w.full(now, t.limit, t.climb.least()) && !t.alarm(now) {
		return
	}
	t.smooth = w.took / time.Duration(w.n)
	if t.fixed {
		t.window = window{}
		return
	}
	t.set(t.climb.next(w.sample(now, t.limit)))
}

// kept reports whether calls wait for the limit.
func (t *turns) kept() bool { return t.queue.head != nil }

// alarm ends a window early that is far off the usual, so that a change of the
// server's is followed soon. The window after it is a full one.
func (t *turns) alarm(now time.Time) bool {
	w, c := &t.window, &t.climb
	if t.fixed || w.n < minReplies || now.Sub(w.began) < searchTime {
		return false
	}
	s := w.sample(now, t.limit)
	return c.odd == 0 && c.outside(s.cost, s.lat) != 0
}

// cut lowers the limit because of a refusal. Calls that are in flight now do not lower it again.
func (t *turns) cut(factor float64) {
	t.backOffs++
	t.set(t.climb.cut(factor))
	t.deaf = t.inFlight
}

// set begins a window. Replies of calls that were made under another limit do not
// belong to it.
func (t *turns) set(limit int) {
	t.window = window{}
	if limit != t.limit {
		t.window.skip = t.inFlight
	}
	t.limit = limit
}

func (t *turns) snapshot() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Snapshot{
		Limit:    t.limit,
		InFlight: t.inFlight,
		Waiting:  t.queue.n,
		Waits:    t.waits,
		BackOffs: t.backOffs,
		Smooth:   t.smooth,
	}
}
