package nlm

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

var errGrace = errStatus(nlm4.NLM4_DENIED_GRACE_PERIOD)

// admit refuses what the grace period forbids: new locks and tests while it lasts, reclaims
// after it.
func (s *Service) admit(reclaim bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A late reclaim must fail: another client may have held the lock meanwhile, and changed
	// the file. Without a grace period every reclaim passes.
	if s.inGrace == reclaim || !s.inGrace && s.o.Grace == 0 {
		return nil
	}
	s.n.graceDenied.Add(1)
	return errGrace
}

// test is procedure 1: it returns a lock that conflicts, if there is one.
func (s *Service) test(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Testargs) (xdr.Appender, error) {
	res := &nlm4.Nlm4Testres{Cookie: bytes.Clone(a.Cookie)}
	err := s.begin(ctx, q, c, &a.Alock, a.Exclusive)
	if err == nil {
		err = s.admit(false)
	}
	if err == nil {
		var l vfs.Lock
		var free bool
		if l, free, err = q.locker.TestLock(ctx, q.h, &q.lock); err == nil && !free {
			err = vfs.ErrLocked
			oh, svid := holder(&l.Owner)
			res.TestStat.Holder = nlm4.Nlm4Holder{Exclusive: l.Exclusive, Svid: svid, Oh: oh, LOffset: l.Off, LLen: l.Len}
		}
	}
	res.TestStat.Stat, err = s.refusal(ctx, c, err)
	return res, err
}

// lock is procedure 2: it takes a lock, or queues the request.
func (s *Service) lock(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Lockargs) (xdr.Appender, error) {
	return s.lockAs(ctx, q, c, a, true)
}

// nmLock is procedure 22: a lock for a client that does not want to be told of a restart.
func (s *Service) nmLock(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Lockargs) (xdr.Appender, error) {
	return s.lockAs(ctx, q, c, a, false)
}

func (s *Service) lockAs(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Lockargs, monitored bool) (xdr.Appender, error) {
	res := &nlm4.Nlm4Res{Cookie: bytes.Clone(a.Cookie)}
	err := s.begin(ctx, q, c, &a.Alock, a.Exclusive)
	if err == nil {
		err = s.admit(a.Reclaim)
	}
	if err == nil && monitored {
		err = s.remember(ctx, q)
	}
	if err == nil {
		err = s.take(ctx, q, a)
	}
	res.Stat.Stat, err = s.refusal(ctx, c, err)
	switch res.Stat.Stat {
	case nlm4.NLM4_GRANTED:
		s.n.granted.Add(1)
	case nlm4.NLM4_BLOCKED:
		s.n.blocked.Add(1)
	case nlm4.NLM4_DENIED:
		s.n.denied.Add(1)
	}
	return res, err
}

// may returns nil if the caller has the right to lock the file, shared or exclusive.
func (s *Service) may(ctx context.Context, q *request) error {
	_, _, err := q.locker.TestLock(ctx, q.h, &q.lock)
	return err
}

// remember has q's client monitored: it is written to the disk, and told of a restart. Only
// a client that may lock the file is, because the list is bounded.
func (s *Service) remember(ctx context.Context, q *request) error {
	if s.watches(q.c) {
		return nil
	}
	if err := s.may(ctx, q); err != nil {
		return err
	}
	if err := s.watch(q.c); err != nil {
		s.o.Log.Warn("a lock is refused, since the client cannot be remembered", "client", q.c.key.name, "error", err)
		return errStatus(nlm4.NLM4_DENIED_NOLOCKS)
	}
	return nil
}

var errBlocked = errStatus(nlm4.NLM4_BLOCKED)

// take locks q's range, or puts it into the queue.
func (s *Service) take(ctx context.Context, q *request, a *nlm4.Nlm4Lockargs) error {
	q.c.gate.RLock()
	defer q.c.gate.RUnlock()
	f, err := s.open(ctx, q.h)
	if err != nil {
		return err
	}
	defer s.end(f)
	owner := q.lock.Owner
	if have := f.held[owner]; have != nil && a.State != 0 && have.state != 0 && have.state != a.State {
		// The client has restarted, and its SM_NOTIFY has not arrived yet. The locks that
		// this process held before are void.
		s.releaseHolding(ctx, f, owner)
	}
	s.settle(f, owner, q.span) // no GRANTED is needed any more: the reply tells the client
	w := f.waiting(owner, q.span)
	if a.Block && !f.covers(owner, q.span) && !f.touches(owner, q.span) && f.behind(owner, q.span, w) {
		if err := s.may(ctx, q); err != nil {
			return err
		}
		return s.enqueue(f, w, q, a)
	}
	if !s.room(q.c, f.held[owner] == nil) && !f.covers(owner, q.span) {
		s.sayFull(q.c, errShare)
		return errStatus(nlm4.NLM4_DENIED_NOLOCKS)
	}
	err = q.locker.Lock(ctx, q.h, &q.lock)
	switch {
	case err == nil:
		s.hold(f, q.c, owner, f.spans(owner).Put(q.span)).state = a.State
		if w != nil {
			s.dequeue(f, w)
		}
		if !q.span.Exclusive {
			s.wake(ctx, f) // the lock may have been exclusive before
		}
		return nil
	case errors.Is(err, vfs.ErrLocked) && a.Block:
		return s.enqueue(f, w, q, a)
	case errors.Is(err, vfs.ErrBusy):
		s.sayFull(q.c, err)
	}
	return err
}

// room reports whether one more lock of c's is within the bounds. owner means that the
// lock's owner has no other in the file.
func (s *Service) room(c *client, owner bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomFor(c.home, owner)
}

// unlock is procedure 4. It is served in the grace period, too: a client may give up a lock
// that it has reclaimed.
func (s *Service) unlock(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Unlockargs) (xdr.Appender, error) {
	res := &nlm4.Nlm4Res{Cookie: bytes.Clone(a.Cookie)}
	err := s.begin(ctx, q, c, &a.Alock, false)
	if err == nil {
		err = s.free(ctx, q)
	}
	res.Stat.Stat, err = s.refusal(ctx, c, err)
	return res, err
}

// free unlocks q's range.
func (s *Service) free(ctx context.Context, q *request) error {
	q.c.gate.RLock()
	defer q.c.gate.RUnlock()
	f, err := s.open(ctx, q.h)
	if err != nil {
		return err
	}
	defer s.end(f)
	owner := q.lock.Owner
	for _, w := range slices.Clone(f.queue) {
		if w.lock.Owner == owner && w.span.First == q.span.First && w.span.Last == q.span.Last {
			s.dequeue(f, w) // a client that unlocks no longer wants the lock
		}
	}
	for _, w := range slices.Clone(f.sent) {
		if w.lock.Owner == owner && w.span.Overlaps(q.span) {
			s.settle(f, owner, w.span)
		}
	}
	if len(f.spans(owner).Take(q.span)) > len(f.spans(owner)) && !s.room(q.c, false) {
		return errStatus(nlm4.NLM4_DENIED_NOLOCKS)
	}
	if err := s.unlockSpan(ctx, f, q.c, owner, q.span); err != nil {
		return err
	}
	s.wake(ctx, f)
	return nil
}

// unlockSpan frees span in the file system, and in f. A stale file has no locks.
func (s *Service) unlockSpan(ctx context.Context, f *file, c *client, owner vfs.Owner, span byterange.Span) error {
	err := s.all.Unlock(ctx, f.h, &vfs.Lock{Owner: owner, Off: span.First, Len: span.Len()})
	if err != nil && !errors.Is(err, vfs.ErrStale) && !errors.Is(err, vfs.ErrBadHandle) {
		return err
	}
	s.hold(f, c, owner, f.spans(owner).Take(span))
	return err
}

// cancel is procedure 3: it takes a request back.
func (s *Service) cancel(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Cancargs) (xdr.Appender, error) {
	res := &nlm4.Nlm4Res{Cookie: bytes.Clone(a.Cookie)}
	err := s.begin(ctx, q, c, &a.Alock, a.Exclusive)
	if err == nil {
		err = s.withdraw(ctx, q)
	}
	res.Stat.Stat, err = s.refusal(ctx, c, err)
	return res, err
}

// withdraw takes a request out of the queue. If the lock has been granted and the client
// has not confirmed it, the lock is freed. If it has, withdraw returns ErrLocked, and the
// client must unlock.
func (s *Service) withdraw(ctx context.Context, q *request) error {
	q.c.gate.RLock()
	defer q.c.gate.RUnlock()
	f, err := s.open(ctx, q.h)
	if err != nil {
		return err
	}
	defer s.end(f)
	if w := f.waiting(q.lock.Owner, q.span); w != nil {
		s.dequeue(f, w)
		s.wake(ctx, f) // requests behind it may go on
		return nil
	}
	if !s.settle(f, q.lock.Owner, q.span) {
		return vfs.ErrLocked
	}
	if err := s.unlockSpan(ctx, f, q.c, q.lock.Owner, q.span); err != nil {
		return err
	}
	s.wake(ctx, f)
	return nil
}

// granted is procedure 5, which servers call. It is refused: this server asks no other for
// locks.
func (s *Service) granted(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Testargs) (xdr.Appender, error) {
	res := &nlm4.Nlm4Res{Cookie: bytes.Clone(a.Cookie)}
	err := s.begin(ctx, q, c, &a.Alock, a.Exclusive)
	if err == nil {
		err = vfs.ErrLocked
	}
	res.Stat.Stat, err = s.refusal(ctx, c, err)
	return res, err
}
