package outage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// outcome is what a change has returned.
type outcome struct {
	h       vfs.Handle
	attr    vfs.Attr
	wcc, to vfs.WCC // of the object, or of the directory; of the second directory
	err     error
}

// attempt is a change under way, or one that nobody has heard the outcome of.
type attempt struct {
	done chan struct{} // closed when out is there
	out  outcome
}

// changes are those that nobody waits for, by what they are.
type changes struct {
	mu      sync.Mutex
	orphans map[string][]*attempt // the oldest first
	n       int
}

// keyOf is the same for the same change of the same caller.
func keyOf(what, who string, args ...any) string {
	key := append(append([]byte(what), ' '), who...)
	for _, arg := range args {
		if name, ok := arg.(string); ok {
			key = strconv.AppendQuote(append(key, ' '), name)
			continue
		}
		key = fmt.Appendf(key, " %+v", arg)
	}
	return string(key)
}

// change makes a change that must not be made twice. It takes over the same one, if that has no answer yet, or an
// outcome that nobody was told. do must not use memory of the caller's: it may outlive the call.
func (f *FS) change(ctx context.Context, key string, do func(context.Context) outcome) outcome {
	if err := ctx.Err(); err != nil {
		return outcome{err: err} // nothing was begun
	}
	s := f.s
	a := s.changes.adopt(key)
	if a == nil {
		var err error
		if a, err = s.begin(do); err != nil {
			return outcome{err: err}
		}
	}
	began, timer := s.now(), time.NewTimer(s.o.Answer)
	defer timer.Stop()
	select {
	case <-a.done:
		a.out.err = s.judge(ctx, began, a.out.err)
		return a.out
	case <-timer.C:
		s.orphan(key, a)
		s.unheard(began)
		return outcome{err: &BusyError{fmt.Errorf("a change was made of which nothing is known after %v; it goes on", s.o.Answer)}}
	case <-ctx.Done():
		s.orphan(key, a)
		return outcome{err: fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err())}
	}
}

// begin begins a change.
func (s *shared) begin(do func(context.Context) outcome) (*attempt, error) {
	switch {
	case s.silent.Load():
		return nil, errSilent
	case s.changes.full():
		return nil, errFull
	}
	a := &attempt{done: make(chan struct{})}
	if !s.spawn(func() {
		defer close(a.done)
		a.out = do(s.life)
	}) {
		return nil, errClosed
	}
	return a, nil
}

// orphan leaves a change to the next caller with the same. Its outcome is kept for keepOutcome.
func (s *shared) orphan(key string, a *attempt) {
	s.changes.add(key, a)
	s.spawn(func() {
		<-a.done // when the FS is closed, too: do then ends
		t := time.NewTimer(keepOutcome)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.life.Done():
		}
		s.changes.remove(key, a)
	})
}

func (c *changes) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n >= maxOrphans
}

func (c *changes) add(key string, a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.orphans == nil {
		c.orphans = make(map[string][]*attempt)
	}
	c.orphans[key] = append(c.orphans[key], a)
	c.n++
}

// adopt takes the oldest change that is the same; nil: there is none.
func (c *changes) adopt(key string) *attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.orphans[key]
	if len(all) == 0 {
		return nil
	}
	c.take(key, 0)
	return all[0]
}

func (c *changes) remove(key string, a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.orphans[key], a); i >= 0 {
		c.take(key, i)
	}
}

// take takes one out. c.mu is held.
func (c *changes) take(key string, i int) {
	left := slices.Delete(slices.Clone(c.orphans[key]), i, i+1)
	if c.n--; len(left) == 0 {
		delete(c.orphans, key)
		return
	}
	c.orphans[key] = left
}
