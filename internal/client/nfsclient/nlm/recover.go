package nlm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/vfs"
)

// suspect notes that the server may have restarted.
func (s *shared) suspect() {
	s.epoch.Add(1)
	select {
	case s.nudge <- struct{}{}:
	default: // the keeper is awake already
	}
}

// graced notes that the server refuses a lock because of a grace. Of one grace it is told many times.
func (s *shared) graced() {
	if s.held.Load() == 0 || s.grace.Load() == s.epoch.Load()+1 {
		return
	}
	s.suspect()
	s.grace.Store(s.epoch.Load() + 1)
}

// keep runs while locks are held. It tries the connection, and asks for the locks again when the
// server may have restarted.
func (s *shared) keep() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for s.needed() {
		select {
		case <-tick.C:
			s.ping(s.life)
		case <-s.nudge:
		case <-s.life.Done():
			return
		}
		s.recover()
	}
}

// needed reports whether the keeper is. If it is not, the next lock starts another.
func (s *shared) needed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeping = s.locks > 0 && !s.closed
	return s.keeping
}

// recover asks for all locks again that were not since the last suspicion. It goes on until the server
// has answered for each.
func (s *shared) recover() {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		epoch := s.epoch.Load()
		doubtful, failed := s.reclaimAll(s.holders(), epoch, false)
		if failed == 0 { // all have been asked for, and none of them says more
			_, failed = s.reclaimAll(doubtful, epoch, true)
		}
		if failed == 0 && epoch == s.epoch.Load() || !sleep(s.life, pause) {
			return
		}
		s.ping(s.life)
	}
}

// holders are the keys of the entries with locks.
func (s *shared) holders() (keys []key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, e := range s.entries {
		if len(e.set) > 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// reclaimAll verifies what is held, a few at a time. It returns what is unclear, and of how many the
// server has not answered.
func (s *shared) reclaimAll(keys []key, epoch uint64, last bool) (doubtful []key, failed int) {
	var mu sync.Mutex
	each(keys, func(k key) {
		err := s.reclaimOne(k, epoch, last)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, errUnclear):
			doubtful = append(doubtful, k)
		case err != nil:
			failed++
		}
	})
	return doubtful, failed
}

// each calls do for all keys, maxReclaims at a time.
func each(keys []key, do func(key)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan struct{}, maxReclaims)
	for _, k := range keys {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			do(k)
		})
	}
}

func (s *shared) reclaimOne(k key, epoch uint64, last bool) error {
	s.mu.Lock()
	e := s.entries[k]
	if e != nil {
		e.uses++
	}
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release(e)
	}()
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-s.life.Done():
		return s.life.Err()
	}
	if len(e.set) == 0 || e.epoch >= epoch {
		return nil
	}
	return s.verify(s.life, e, last)
}

// outcome is what has become of locks, but for those that were had back, or held all the time.
type outcome struct {
	lost    []byterange.Span
	unclear []byterange.Span // at a server that has no grace: shared with others, or locked again meanwhile
	why     string
}

var errUnclear = errors.New("nlm: it is not clear whether the server has restarted")

// verify asks for what e holds again. last says that nothing more can be learnt from other locks, so
// that what is unclear counts as lost. With an error nothing is decided. The turn is held.
func (s *shared) verify(ctx context.Context, e *entry, last bool) error {
	epoch := s.epoch.Load()
	var out outcome
	for _, span := range slices.Clone(e.set) {
		if err := s.reclaim(ctx, e, span, epoch, &out); err != nil {
			return err
		}
	}
	if len(out.unclear) > 0 && !s.proves(epoch, e) {
		if !last {
			return errUnclear
		}
		out.why = "the connection broke, and the server does not tell whether it has restarted"
		for _, span := range out.unclear { // which it may still have
			if err := s.unlock(ctx, e, e.auth, span); unanswered(err) {
				return err
			}
		}
		out.lost = append(out.lost, out.unclear...)
	}
	e.epoch, e.mixed, e.again = epoch, false, nil
	if len(out.lost) > 0 {
		s.lose(e, out.lost, out.why)
	}
	return nil
}

// reclaim asks for a lock again.
func (s *shared) reclaim(ctx context.Context, e *entry, span byterange.Span, epoch uint64, out *outcome) error {
	for pause, n := firstPause, 0; n < maxRounds; n, pause = n+1, min(2*pause, maxPause) {
		err := s.lock(ctx, e, e.auth, span, true)
		switch {
		case err == nil:
			s.n.reclaimed.Add(1)
			return nil
		case missing(err):
			out.lose(span, "the server has no lock manager any more")
			return nil
		case unanswered(err) || ctx.Err() != nil:
			return err
		case errors.Is(err, errGrace):
			if err := s.look(ctx, e, span, epoch, out); !errors.Is(err, errGrace) {
				return err
			}
		case errors.Is(err, vfs.ErrLocked):
			out.lose(span, "another has taken it")
			return nil
		case errors.Is(err, vfs.ErrStale):
			out.lose(span, "the file is gone")
			return nil
		case !errors.Is(err, vfs.ErrBusy):
			out.lose(span, err.Error())
			return nil
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
	out.lose(span, "the server does not decide")
	return nil
}

func (o *outcome) lose(span byterange.Span, why string) { o.lost, o.why = append(o.lost, span), why }

// proof is what a lock says that the server was seen to have kept: from the epoch since to epoch it has
// not restarted.
type proof struct{ since, epoch uint64 }

// prove notes that the server still has a lock of e, which it had in e.epoch.
func (s *shared) prove(epoch uint64, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proof.epoch == epoch {
		s.proof.since = min(s.proof.since, e.epoch)
	} else {
		s.proof = proof{e.epoch, epoch}
	}
}

// proves reports whether the server is known to have what it had of e in e.epoch.
func (s *shared) proves(epoch uint64, e *entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proof.epoch == epoch && s.proof.since <= e.epoch
}

// look finds out what a server without a grace has of a lock: if it has restarted, all is lost but what
// was locked since. The error Is errGrace if it has one after all.
func (s *shared) look(ctx context.Context, e *entry, span byterange.Span, epoch uint64, out *outcome) error {
	ask := s.number(0, e.owner.name)
	found := outcome{why: out.why}
	mine := false
	todo := []byterange.Span{span}
	for n := 0; len(todo) > 0; n++ {
		part := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		by, err := s.test(ctx, &e.h, ask, e.auth, byterange.Span{First: part.First, Last: part.Last, Exclusive: true})
		have, ok := byterange.Of(by.lock.Off, by.lock.Len, by.lock.Exclusive)
		switch {
		case err == nil:
			found.lose(part, "the server has restarted, and its grace is over")
			continue
		case unanswered(err) || errors.Is(err, errGrace) || ctx.Err() != nil:
			return err
		case !errors.Is(err, vfs.ErrLocked):
			found.lose(part, err.Error())
			continue
		case !ok || !have.Overlaps(part) || n >= maxParts:
			found.lose(part, "the server's answer makes no sense")
			continue
		}
		have.First, have.Last = max(have.First, part.First), min(have.Last, part.Last)
		got := byterange.Span{First: have.First, Last: have.Last, Exclusive: span.Exclusive}
		switch own := by.svid == e.owner.svid && (by.oh == "" || by.oh == string(e.owner.oh[:])); {
		case own && slices.ContainsFunc(e.again, got.Overlaps): // it may be that of after the restart
			found.unclear = append(found.unclear, got)
		case own && have.Exclusive == span.Exclusive:
			mine = true
		case own, have.Exclusive || span.Exclusive:
			found.lose(got, "another has taken it")
		default:
			found.unclear = append(found.unclear, got)
		}
		if have.First > part.First {
			todo = append(todo, byterange.Span{First: part.First, Last: have.First - 1, Exclusive: span.Exclusive})
		}
		if have.Last < part.Last {
			todo = append(todo, byterange.Span{First: have.Last + 1, Last: part.Last, Exclusive: span.Exclusive})
		}
	}
	if mine && !e.mixed {
		s.prove(epoch, e)
	}
	out.lost, out.unclear, out.why = append(out.lost, found.lost...), append(out.unclear, found.unclear...), found.why
	return nil
}
