package memqueue

import (
	"context"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// end is either end of a run's queue.
type end struct {
	*broker
	job queue.Job
}

// token is a lease: of an item, the nth.
type token struct {
	it  *item
	nth int
}

// holds reports whether the lease is the item's last, and has not ended. The caller has s.mu.
func (t *token) holds() bool { return t.it.leases == t.nth && time.Now().Before(t.it.until) }

// Deal implements [queue.Dealer].
func (e *end) Deal(ctx context.Context, it queue.Item) error {
	if err := it.Check(); err != nil {
		return err
	}
	return e.await(ctx, e.within(e.job, func(r *run) (bool, time.Time) {
		if !r.deal(it) {
			return false, time.Time{}
		}
		e.s.wake()
		return true, time.Time{}
	}))
}

// Announce implements [queue.Dealer].
func (e *end) Announce(ctx context.Context) error {
	return e.await(ctx, e.within(e.job, func(r *run) (bool, time.Time) {
		r.job.Spec = slices.Clone(e.job.Spec)
		e.s.wake()
		return true, time.Time{}
	}))
}

// Take implements [queue.Taker].
func (e *end) Take(ctx context.Context) (l *queue.Lease, err error) {
	var bad error
	err = e.await(ctx, e.within(e.job, func(r *run) (bool, time.Time) {
		it, until := r.take(time.Now())
		if it == nil {
			return false, until
		}
		if bad = it.Check(); bad != nil {
			r.drop(it)
		} else {
			l = &queue.Lease{
				Item:    queue.Item{ID: it.ID, Body: slices.Clone(it.Body)},
				Attempt: it.leases,
				Token:   &token{it, it.leases},
			}
		}
		return true, time.Time{}
	}))
	if err == nil {
		err = bad
	}
	return l, err
}

// Extend implements [queue.Taker].
func (e *end) Extend(ctx context.Context, l *queue.Lease) (err error) {
	t, ok := l.Token.(*token)
	if !ok {
		return queue.ErrForged
	}
	expired := false
	err = e.await(ctx, e.within(e.job, func(*run) (bool, time.Time) {
		if expired = !t.holds(); !expired {
			t.it.until = time.Now().Add(queue.LeaseTime)
		}
		return true, time.Time{}
	}))
	if err == nil && expired {
		err = queue.ErrExpired
	}
	return err
}

// Settle implements [queue.Taker].
func (e *end) Settle(ctx context.Context, l *queue.Lease, done bool) error {
	t, ok := l.Token.(*token)
	if !ok {
		return queue.ErrForged
	}
	return e.await(ctx, e.within(e.job, func(r *run) (bool, time.Time) {
		switch {
		case done:
			r.drop(t.it)
		case t.holds():
			t.it.until = time.Time{}
		}
		e.s.wake()
		return true, time.Time{}
	}))
}
