package nlm

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
)

// waiter is a lock that waits, and later its grant.
type waiter struct {
	c      *client
	f      *file
	locker vfs.Locker
	lock   vfs.Lock
	span   byterange.Span
	state  int32
	async  bool
	args   nlm4.Nlm4Testargs // of GRANTED; its own copy
	cookie uint64            // of GRANTED

	// Of a grant.
	since   time.Time
	tries   int  // guarded by Service.mu: messages without an answer
	arrived bool // a try without an answer may have arrived; only the sender uses it
}

func (w *waiter) owner() *client { return w.c }

// waiting returns this lock's waiter in the queue, or nil.
func (f *file) waiting(owner vfs.Owner, span byterange.Span) *waiter {
	return findWaiter(f.queue, owner, span)
}

func findWaiter(list []*waiter, owner vfs.Owner, span byterange.Span) *waiter {
	i := slices.IndexFunc(list, func(w *waiter) bool { return w.lock.Owner == owner && w.span == span })
	if i < 0 {
		return nil
	}
	return list[i]
}

// behind reports whether a request of another owner that conflicts with span waits: in
// front of w, or anywhere in the queue if w is nil.
func (f *file) behind(owner vfs.Owner, span byterange.Span, w *waiter) bool {
	for _, o := range f.queue {
		if o == w {
			return false
		}
		if o.lock.Owner != owner && o.span.Conflicts(span) {
			return true
		}
	}
	return false
}

// enqueue puts q into the queue, unless it is there as w. It returns errBlocked if q
// waits.
func (s *Service) enqueue(f *file, w *waiter, q *request, a *nlm4.Nlm4Lockargs) error {
	if w != nil {
		// Asked again: it keeps its place, but with the caller's present rights.
		w.locker, w.async = q.locker, q.async
		return errBlocked
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := q.c.home
	if !may(h.waits, maxClientWaits, s.waits, maxWaits) || !may(countOf(f.queue, h), maxQueue, len(f.queue), maxQueue) || s.closed {
		return errStatus(nlm4.NLM4_DENIED_NOLOCKS)
	}
	s.cookie++
	w = &waiter{c: q.c, f: f, locker: q.locker, lock: q.lock, span: q.span, state: a.State, async: q.async, cookie: s.cookie}
	w.args = nlm4.Nlm4Testargs{Cookie: cookieBytes(s.cookie), Exclusive: a.Exclusive, Alock: *q.alock}
	for _, p := range []*[]byte{&w.args.Alock.CallerName, &w.args.Alock.Fh, &w.args.Alock.Oh} {
		*p = bytes.Clone(*p)
	}
	f.queue = append(f.queue, w)
	s.waits++
	h.waits++
	f.refer(q.c, 1)
	if len(s.queued) == 0 {
		select {
		case s.poke <- struct{}{}:
		default:
		}
	}
	s.queued[f] = struct{}{}
	return errBlocked
}

func (s *Service) dequeue(f *file, w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.queue = slices.DeleteFunc(f.queue, func(o *waiter) bool { return o == w })
	s.waits--
	w.c.home.waits--
	f.refer(w.c, -1)
	if len(f.queue) == 0 {
		delete(s.queued, f)
	}
}

// wake grants, in order, what can be granted of the queue. The caller has f's turn.
func (s *Service) wake(ctx context.Context, f *file) {
	if len(f.queue) == 0 {
		return
	}
	// The grants must not end with the call that has made them possible.
	ctx = context.WithoutCancel(ctx)
	for _, w := range slices.Clone(f.queue) {
		if f.taken(w.lock.Owner, w.span) || !f.touches(w.lock.Owner, w.span) && f.behind(w.lock.Owner, w.span, w) {
			continue
		}
		if !s.room(w.c, f.held[w.lock.Owner] == nil) {
			continue
		}
		switch err := w.locker.Lock(ctx, f.h, &w.lock); {
		case err == nil:
			s.hold(f, w.c, w.lock.Owner, f.spans(w.lock.Owner).Put(w.span)).state = w.state
			s.dequeue(f, w)
			s.sendGrant(f, w)
		case errors.Is(err, vfs.ErrLocked), errors.Is(err, vfs.ErrBusy):
		default:
			// Waiting will not help. The client gets the error when it asks again.
			s.o.Log.Info("a lock does not wait any more", "client", w.c.key.name, "error", err)
			s.dequeue(f, w)
		}
	}
}

// tend polls queues whose locks local programs may hold, and forgets idle clients, until
// the service is closed.
func (s *Service) tend() {
	idle := time.NewTicker(idleEvery)
	defer idle.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-idle.C:
			s.forgetIdle(maxClients, (*client).gone)
		case <-s.poke:
			s.poll()
		}
	}
}

// poll tries the files that have a queue again and again, until there is none.
func (s *Service) poll() {
	timer := time.NewTimer(pollPause)
	defer timer.Stop()
	tidied := time.Now()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		files := s.withQueue()
		for _, h := range files {
			f, err := s.open(s.ctx, h)
			if err != nil {
				return
			}
			s.wake(s.ctx, f)
			s.end(f)
		}
		if len(files) == 0 {
			return
		}
		if time.Since(tidied) >= idleEvery {
			tidied = time.Now()
			s.forgetIdle(maxClients, (*client).gone)
		}
		timer.Reset(max(pollPause, pollShare*time.Since(began)))
	}
}

func (s *Service) withQueue() []vfs.Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]vfs.Handle, 0, len(s.queued))
	for f := range maps.Keys(s.queued) {
		all = append(all, f.h)
	}
	return all
}
