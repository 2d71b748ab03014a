// Package memqueue is a broker of queues in memory, for tests of those who deal and take.
//
// It has the time that package time has, and its goroutines block on channels alone, so it works
// in a bubble of testing/synctest. Its faults are those of real brokers: it forgets all that it
// holds, it cannot be reached for a while, and hands out what strangers have put there.
package memqueue

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// Server has what the connections of a broker share. Its methods may be called concurrently.
type Server struct {
	mu      sync.Mutex
	changed chan struct{} // closed at each change, and made anew
	cut     chan struct{} // closed at each outage, and made anew when it ends
	down    bool
	runs    map[string]*run         // by Job.Run
	answers map[string][]*responder // by Job.Run: they outlive the queue
}

// run is the queue of one run.
type run struct {
	job   queue.Job
	items []*item // in the order in which they were dealt
}

// item is what was dealt and is not done.
type item struct {
	queue.Item
	leases int
	until  time.Time // when the last lease ends, unless it was given back: then it is zero
}

// free reports whether an item can be leased at a time.
func (it *item) free(now time.Time) bool {
	return it.leases < queue.MaxLeases && !now.Before(it.until)
}

// New makes a broker that has nothing.
func New() *Server {
	return &Server{
		changed: make(chan struct{}),
		cut:     make(chan struct{}),
		runs:    make(map[string]*run),
		answers: make(map[string][]*responder),
	}
}

// Connect makes a connection. Closing it leaves the others alone.
func (s *Server) Connect() queue.Broker { return &broker{s: s, closed: make(chan struct{})} }

// Forget loses all queues, as a broker does whose files were deleted. Connections remain.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.runs)
	s.wake()
}

// Outage makes the server unreachable until back is called, once. Answers that are on their way
// are lost. Leases end meanwhile.
func (s *Server) Outage() (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	close(s.cut)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.down, s.cut = false, make(chan struct{})
		s.wake()
	}
}

// Forge puts an item into a run's queue as a stranger would: nothing of it is looked at.
func (s *Server) Forge(j queue.Job, it queue.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[j.Run]; r != nil {
		r.items = append(r.items, &item{Item: it})
	}
	s.wake()
}

// ForgeJob puts a description into a run's queue, in place of the job's own, as a stranger would.
func (s *Server) ForgeJob(j queue.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[j.Run]; r != nil {
		r.job.Spec = slices.Clone(j.Spec)
	}
	s.wake()
}

// Held is how many items the server holds, of all runs.
func (s *Server) Held() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		n += len(r.items)
	}
	return n
}

// wake has all that waits look again. The caller has s.mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// open makes the queue of a run, or finds it. The caller has s.mu.
func (s *Server) open(j queue.Job) {
	maps.DeleteFunc(s.runs, func(_ string, r *run) bool { return r.job.Name == j.Name && r.job.Run != j.Run })
	if s.runs[j.Run] == nil {
		j.Spec = slices.Clone(j.Spec)
		s.runs[j.Run] = &run{job: j}
	}
	s.wake()
}

// deal adds an item in the place of an earlier one with its ID, if there is room. The caller has s.mu.
func (r *run) deal(it queue.Item) bool {
	r.items = slices.DeleteFunc(r.items, func(old *item) bool { return old.ID == it.ID })
	if len(r.items) >= queue.MaxDealt {
		return false
	}
	r.items = append(r.items, &item{Item: queue.Item{ID: it.ID, Body: slices.Clone(it.Body)}})
	return true
}

// take leases the first item that is free. Without one it says when one may be; the zero time,
// if no lease is to end. The caller has s.mu.
func (r *run) take(now time.Time) (found *item, until time.Time) {
	for _, it := range r.items {
		if it.free(now) {
			it.leases++
			it.until = now.Add(queue.LeaseTime)
			return it, it.until
		}
		if it.leases < queue.MaxLeases && (until.IsZero() || it.until.Before(until)) {
			until = it.until
		}
	}
	return nil, until
}

// drop removes an item, if it is still there. The caller has s.mu.
func (r *run) drop(it *item) {
	r.items = slices.DeleteFunc(r.items, func(other *item) bool { return other == it })
}
