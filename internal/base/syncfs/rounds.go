package syncfs

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Rounds lets calls that want the same file system synced wait together: they join the next
// round, which has not begun. One round runs at a time. The zero Rounds are usable.
type Rounds struct {
	mu   sync.Mutex
	next map[uint64]*round // by device
	last *round            // whose turn comes last
	open atomic.Int32      // rounds that have not ended
}

type round struct {
	done  chan struct{}
	calls int   // that wait for it
	err   error // set when done is closed
}

// Do runs sync, or waits for a run by another call that begins after this one came, and
// returns its error. sync is told how many calls it serves.
func (s *Rounds) Do(dev uint64, sync func(calls int) error) error {
	s.mu.Lock()
	if r := s.next[dev]; r != nil {
		r.calls++
		s.mu.Unlock()
		<-r.done
		return r.err
	}
	r := &round{done: make(chan struct{}), calls: 1}
	if s.next == nil {
		s.next = make(map[uint64]*round)
	}
	s.next[dev] = r
	s.open.Add(1)
	before := s.last
	s.last = r
	s.mu.Unlock()
	if before != nil {
		<-before.done
	}
	s.gather(r)
	s.mu.Lock()
	delete(s.next, dev)
	calls := r.calls
	s.mu.Unlock()
	r.err = sync(calls)
	s.open.Add(-1)
	close(r.done)
	return r.err
}

// underWay reports whether a round runs, or is to come.
func (s *Rounds) underWay() bool { return s.open.Load() > 0 }

// maxGather bounds how often a round lets other goroutines run before it begins. Calls that come
// later are in the next one.
const maxGather = 16

// gather lets the goroutines run that are ready, and again as long as some of them join r. The
// calls of the last round are about to come back, and would wait for one more.
func (s *Rounds) gather(r *round) {
	had := 0
	for range maxGather {
		s.mu.Lock()
		n := r.calls
		s.mu.Unlock()
		if n == had {
			return
		}
		had = n
		runtime.Gosched()
	}
}
