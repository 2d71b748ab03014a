package syncfs

import "sync"

// Rounds lets calls that want the same file system synced wait together: they join the next
// round, which has not begun. One round runs at a time. The zero Rounds are usable.
type Rounds struct {
	mu   sync.Mutex
	next map[uint64]*round // by device
	last *round            // whose turn comes last
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
	before := s.last
	s.last = r
	s.mu.Unlock()
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	delete(s.next, dev)
	calls := r.calls
	s.mu.Unlock()
	r.err = sync(calls)
	close(r.done)
	return r.err
}
