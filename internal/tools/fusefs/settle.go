//go:build linux

package fusefs

import (
	"context"
	"sync"
	"time"
)

// settling are the files that are about to be closed: those of which the kernel has announced it (FLUSH), and those of
// which it has told (RELEASE), and which the file system has not closed yet.
type settling struct {
	mu        sync.Mutex
	announced map[*openFile]time.Time
	closing   int
	changed   chan struct{} // closed, and made anew, when one is done
	failed    []error       // of closes that nobody waited for
	failures  int           // how many there were, of which failed has the first
}

func (s *settling) init() {
	s.announced, s.changed = make(map[*openFile]time.Time), make(chan struct{})
}

// announce notes that f may be closed next; unless: it is used after all.
func (s *settling) announce(f *openFile, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced[f] = now
}

// begin says that the file system is told to close f.
func (s *settling) begin(f *openFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.announced, f)
	s.closing++
}

// end says that it has. err is for those who unmount; nil if somebody else was told. It reports whether err was kept.
func (s *settling) end(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing--
	kept := err == nil
	if err != nil {
		s.failures++
	}
	if err != nil && len(s.failed) < maxTold {
		s.failed, kept = append(s.failed, err), true
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return kept
}

func (s *settling) errors() (all []error, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed, s.failures
}

// pending is how many files are on their way, and what is closed when that changes. Announcements are dropped that are
// older than settleAge.
func (s *settling) pending(now time.Time) (n int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, at := range s.announced {
		if now.Sub(at) > settleAge {
			delete(s.announced, f)
		}
	}
	return s.closing + len(s.announced), s.changed
}

// wait waits for files that are about to be closed, for settlePatience at most.
func (s *settling) wait(c *call) {
	n, changed := s.pending(c.now)
	if n == 0 {
		return
	}
	over := time.NewTimer(settlePatience)
	defer over.Stop()
	for n > 0 {
		select {
		case <-changed:
		case <-over.C:
			return
		case <-c.Done():
			return
		}
		n, changed = s.pending(c.now)
	}
}

// drain waits until no file is being closed, or ctx ends, and says how many are.
func (s *settling) drain(ctx context.Context) int {
	for {
		s.mu.Lock()
		n, changed := s.closing, s.changed
		s.mu.Unlock()
		if n == 0 {
			return 0
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return n
		}
	}
}
