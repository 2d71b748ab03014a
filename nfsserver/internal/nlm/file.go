package nlm

import (
	"context"
	"maps"
	"slices"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
)

// file is what is known of a handle with locks, or with calls at work on it.
type file struct {
	h vfs.Handle
	// turn is a lock that a call takes to work on the file, so that the file system's
	// locks and what is noted here change together. It guards the next fields.
	turn   chan struct{}
	held   map[vfs.Owner]*holding
	queue  []*waiter // first come, first served
	sent   []*waiter // granted out of the queue, and not yet acknowledged
	shares []share

	uses int // guarded by Service.mu: calls that have the turn, or wait for it
}

// holding is what one owner has locked of a file.
type holding struct {
	c     *client
	set   byterange.Set
	state int32 // the client's, when it last locked; 0: it did not say
}

// share is a reservation of a file.
type share struct {
	c      *client
	oh     string
	mode   nlm4.Fsh4Mode
	access nlm4.Fsh4Access
}

func (o share) owner() *client { return o.c }

// open takes the turn of h's file. end gives it back.
func (s *Service) open(ctx context.Context, h vfs.Handle) (*file, error) {
	s.mu.Lock()
	f := s.files[h]
	if f == nil {
		f = &file{h: h, turn: make(chan struct{}, 1), held: make(map[vfs.Owner]*holding)}
		s.files[h] = f
	}
	f.uses++
	s.mu.Unlock()
	select {
	case f.turn <- struct{}{}:
		return f, nil
	case <-ctx.Done():
		s.drop(f)
		return nil, ctx.Err()
	}
}

func (s *Service) end(f *file) {
	<-f.turn
	s.drop(f)
}

func (s *Service) drop(f *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.uses--
	// Without uses no call has the turn, so its fields can be read here.
	if f.uses == 0 && len(f.held) == 0 && len(f.queue) == 0 && len(f.shares) == 0 {
		delete(s.files, f.h)
	}
}

// refer counts n more things of c's in f. s.mu is held.
func (f *file) refer(c *client, n int) {
	if c.files[f] += n; c.files[f] == 0 {
		delete(c.files, f)
	}
}

// hold notes that what owner has locked of f is now set.
func (s *Service) hold(f *file, c *client, owner vfs.Owner, set byterange.Set) *holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := f.held[owner]
	if have == nil {
		have = &holding{c: c}
	}
	more, home := len(set)-len(have.set), have.c.home
	s.locks += more
	home.locks += more
	switch {
	case len(have.set) == 0 && len(set) > 0:
		home.holdings++
	case len(have.set) > 0 && len(set) == 0:
		home.holdings--
	}
	f.refer(have.c, more)
	have.set = set
	if len(set) == 0 {
		delete(f.held, owner)
	} else {
		f.held[owner] = have
	}
	return have
}

func (f *file) spans(owner vfs.Owner) byterange.Set {
	if have := f.held[owner]; have != nil {
		return slices.Clone(have.set)
	}
	return nil
}

func (f *file) covers(owner vfs.Owner, span byterange.Span) bool {
	have := f.held[owner]
	return have != nil && slices.ContainsFunc(have.set, func(o byterange.Span) bool {
		return o.First <= span.First && span.Last <= o.Last && o.Exclusive == span.Exclusive
	})
}

func (f *file) touches(owner vfs.Owner, span byterange.Span) bool {
	have := f.held[owner]
	return have != nil && slices.ContainsFunc(have.set, span.Overlaps)
}

// taken reports whether a lock of another owner that NLM has granted conflicts with span.
func (f *file) taken(owner vfs.Owner, span byterange.Span) bool {
	for other, have := range f.held {
		if _, found := have.set.Conflict(span); found && other != owner {
			return true
		}
	}
	return false
}

// ofClient returns the owners of c that hold something for which which is true.
func (f *file) ofClient(c *client, which func(*holding) bool) []vfs.Owner {
	return slices.Collect(func(yield func(vfs.Owner) bool) {
		for owner, have := range maps.Clone(f.held) {
			if have.c == c && which(have) && !yield(owner) {
				return
			}
		}
	})
}
