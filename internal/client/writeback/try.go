package writeback

import (
	"context"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/pace"
)

// try is the context of a call that is made once. It ends when the call's time is over. While the
// call waits for its turn (package pace), the server has not seen it, and may be answering others:
// as long as it does, that time does not count.
type try struct {
	context.Context
	cancel context.CancelCauseFunc
	s      *shared
	timer  *time.Timer

	mu       sync.Mutex
	start    time.Time     // since when time counts
	length   time.Duration // how much there is
	queued   bool          // the call waits for its turn
	admitted time.Time     // when it last ceased to; zero: it has not waited
}

func (s *shared) newTry(ctx context.Context, start, deadline time.Time) *try {
	t := &try{s: s, start: start, length: deadline.Sub(start)}
	t.Context, t.cancel = context.WithCancelCause(pace.OnWait(ctx, t.waits))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(t.length, t.expire)
	return t
}

// Err is [context.DeadlineExceeded] once the time is over.
func (t *try) Err() error { return context.Cause(t.Context) }

// waits is called when the call begins to wait for its turn, and when that ends.
func (t *try) waits(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued = yes; !yes {
		t.admitted = time.Now()
	}
}

// expire ends the context if the time is over.
func (t *try) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.move()
	if left := time.Until(t.start.Add(t.length)); left > 0 {
		t.timer.Reset(left)
		return
	}
	t.cancel(context.DeadlineExceeded)
}

// move leaves out the time in which the call waited for its turn, and others were answered. t.mu
// is held.
func (t *try) move() {
	answered := t.s.lastAnswer()
	if !t.queued && answered.After(t.admitted) {
		answered = t.admitted
	}
	if answered.After(t.start) {
		t.start = answered
	}
}

// end releases what the context holds, and returns since when the time of the call has counted.
func (t *try) end() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.cancel(context.Canceled)
	t.move()
	return t.start
}
