//go:build linux

package fdcache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// What happens to idle descriptors.
const (
	// SweepEvery is how often the cache is looked through while anything is in it. Ages
	// are counted in such looks, so that a call that uses a descriptor reads no clock.
	SweepEvery = time.Second
	// IdleWriter is after how many looks a clean descriptor that can write is closed: a
	// program that was uploaded can be executed then, and local programs are told that the
	// file was closed (IN_CLOSE_WRITE). It is what Linux nfsd takes.
	IdleWriter = 2
	// IdleOther is the same for all other descriptors. It frees the blocks of files that
	// local programs have removed.
	IdleOther = 5
	// IdleDirty is after how many a dirty one is synced, for clients that have left
	// without a COMMIT.
	IdleDirty = 5
)

// Sweeper runs Look every SweepEvery while More says that there is something to look at. A
// timer runs meanwhile; there is a goroutine only during a look. The two fields are set
// before the first call.
type Sweeper struct {
	Look func(context.Context) // the context ends with Close
	More func() bool

	on      atomic.Bool // the timer runs, or it looks
	mu      sync.Mutex
	timer   *time.Timer // nil: never begun
	ctx     context.Context
	stop    context.CancelFunc
	closed  bool
	running sync.WaitGroup
}

// Wake makes sure that what was put into the cache just now is looked at.
func (s *Sweeper) Wake() {
	if s.on.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.on.Swap(true) {
		return
	}
	if s.timer == nil {
		s.ctx, s.stop = context.WithCancel(context.Background())
		s.timer = time.AfterFunc(SweepEvery, s.tick)
		return
	}
	s.timer.Reset(SweepEvery)
}

// Due reports whether a look is to come.
func (s *Sweeper) Due() bool { return s.on.Load() }

// tick is what the timer does.
func (s *Sweeper) tick() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	s.Look(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	// A call puts something into the cache before it looks whether a look is due.
	s.on.Store(false)
	if !s.closed && s.More() && !s.on.Swap(true) {
		s.timer.Reset(SweepEvery)
	}
}

// Run runs f beside the looks; Close waits for it. It is called during a look only.
func (s *Sweeper) Run(f func()) { s.running.Go(f) }

// Close ends the looks, and waits for the one under way.
func (s *Sweeper) Close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
		s.stop()
	}
	s.mu.Unlock()
	s.running.Wait()
}
