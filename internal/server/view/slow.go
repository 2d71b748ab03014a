package view

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slowCalls keeps the slowest calls of this window and of the last one, so that it always
// has those of at least the last slowWindow.
type slowCalls struct {
	floor atomic.Int64 // what is faster does not count; 0 while there is room

	mu    sync.Mutex
	began time.Time  // guarded by mu, like all below
	calls []SlowCall // the slowest first
	last  []SlowCall
}

// add keeps c if it is among the slowest. It costs one atomic load for most
// calls, and a short lock for others. A new window begins no later than with the
// next Frame, which calls list; until then the floor is that of the old one.
func (s *slowCalls) add(c SlowCall) {
	if !s.counts(c.Took) {
		return
	}
	c.Proc, c.Client, c.Detail, c.Path = short(c.Proc), short(c.Client), short(c.Detail), short(c.Path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(c.At)
	at, _ := slices.BinarySearchFunc(s.calls, c, func(a, b SlowCall) int { return cmp.Compare(b.Took, a.Took) })
	if at == slowest {
		return
	}
	if len(s.calls) == slowest {
		s.calls = s.calls[:slowest-1]
	}
	s.calls = slices.Insert(s.calls, at, c)
	if len(s.calls) == slowest {
		s.floor.Store(int64(s.calls[slowest-1].Took))
	}
}

// counts reports whether a call that took so long may be among the slowest.
func (s *slowCalls) counts(took time.Duration) bool { return int64(took) >= s.floor.Load() }

// turn begins another window when this one is over. Calls may come a little after others
// that ended later. If the clock was set back by more than that, a new window begins.
func (s *slowCalls) turn(now time.Time) {
	age := now.Sub(s.began)
	switch {
	case -slowWindow < age && age < slowWindow:
		return
	case age < 0 || age >= 2*slowWindow:
		s.last = nil
	default:
		s.last = s.calls
	}
	s.began, s.calls = now, nil
	s.floor.Store(0)
}

// list are the calls that are kept, the slowest first.
func (s *slowCalls) list(now time.Time) []SlowFrame {
	s.mu.Lock()
	s.turn(now)
	all := slices.Concat(s.calls, s.last)
	s.mu.Unlock()
	slices.SortStableFunc(all, func(a, b SlowCall) int { return cmp.Compare(b.Took, a.Took) })
	rows := make([]SlowFrame, len(all))
	for i := range all {
		c := &all[i]
		rows[i] = SlowFrame{
			At: c.At.UTC(), Proc: c.Proc, Client: c.Client, XID: c.XID,
			Took: c.Took.Seconds(), Waited: c.Waited.Seconds(), Path: c.Path, Detail: c.Detail,
		}
	}
	return rows
}
