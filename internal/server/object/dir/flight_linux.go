package dir

import (
	"context"
	"fmt"
	"sync"
)

// flights let concurrent syncs of one directory share the work, and know which names in
// it are not yet stable. A sync covers what was changed before it began. All calls that
// come while one runs share the next.
type flights struct {
	mu            sync.Mutex
	running, next *flight
	// changing are the names that are being changed, changed those that were changed
	// since the last sync began, and syncing those that the running sync covers.
	changing, changed, syncing names
}

// names counts by name.
type names map[string]int

func (n *names) add(name string, by int) {
	if *n == nil {
		*n = make(names)
	}
	if (*n)[name] += by; (*n)[name] == 0 {
		delete(*n, name)
	}
}

type flight struct {
	done chan struct{}
	err  error
}

// begin notes that name is about to be changed, so that a call that sees the change knows
// that it is not stable.
func (f *flights) begin(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changing.add(name, 1)
}

// end notes that name was changed, or that nothing has changed.
func (f *flights) end(name string, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changing.add(name, -1)
	if changed {
		f.changed.add(name, 1)
	}
}

// unstable reports whether what a look at name has shown may not be stable. It must be
// called after the look.
func (f *flights) unstable(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changing[name]+f.changed[name]+f.syncing[name] > 0
}

// unsettled reports whether any name may not be stable.
func (f *flights) unsettled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.changing)+len(f.changed)+len(f.syncing) > 0
}

// join runs sync, or waits for another call's run that begins after this call, and
// returns its error. led is true if this call has run it. A call that waits gives up when
// ctx ends. If sync fails, what it should have made stable remains unstable.
func (f *flights) join(ctx context.Context, sync func() error) (led bool, err error) {
	f.mu.Lock()
	if n := f.next; n != nil {
		f.mu.Unlock()
		select {
		case <-n.done:
			return false, n.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	own := &flight{done: make(chan struct{})}
	f.next = own
	if r := f.running; r != nil {
		f.mu.Unlock()
		<-r.done
		f.mu.Lock()
	}
	f.running, f.next = own, nil
	f.syncing, f.changed = f.changed, nil
	f.mu.Unlock()

	own.err = sync()

	f.mu.Lock()
	if own.err != nil {
		for name, n := range f.syncing {
			f.changed.add(name, n)
		}
	}
	f.syncing, f.running = nil, nil
	f.mu.Unlock()
	close(own.done)
	return true, own.err
}

// change makes a change of name in f. In a store that syncs, it remains unstable until f
// is settled. do returns false if it has changed nothing.
func (s *Store) change(ctx context.Context, f *folder, name string, do func() (changed bool, err error)) error {
	return s.gated(ctx, Meta, func() (err error) {
		if s.o.NoSync {
			_, err = do()
			return err
		}
		changed := false
		f.begin(name)
		defer func() { f.end(name, changed) }()
		changed, err = do()
		return err
	})
}

// settle makes stable all that has happened to names in f before the call.
func (s *Store) settle(ctx context.Context, f *folder) error {
	if s.o.NoSync || s.o.ReadOnly {
		return nil
	}
	led, err := f.join(ctx, func() error { return s.syncFolder(ctx, f) })
	if !led {
		s.counts.shared.Add(1)
	}
	return err
}

// settleName makes stable what a look at name in f has just shown.
func (s *Store) settleName(ctx context.Context, f *folder, name string) error {
	if !f.unstable(name) {
		return nil
	}
	return s.settle(ctx, f)
}

// syncFolder syncs for all calls that wait, so the end of this call's context does not
// stop it. After a failure the state on disk is unknown, since the kernel reports each
// error only once: the store then makes no further change.
func (s *Store) syncFolder(ctx context.Context, f *folder) error {
	return s.gated(context.WithoutCancel(ctx), Sync, func() error {
		if err := s.failure(); err != nil {
			return err
		}
		s.counts.syncs.Add(1)
		if err := s.sys.Fsync(f.fd); err != nil {
			err = fail("fsync", err)
			s.failed.CompareAndSwap(nil, &err)
			return s.failure()
		}
		return nil
	})
}

// failure is the error since which the store refuses changes, or nil.
func (s *Store) failure() error {
	if err := s.failed.Load(); err != nil {
		return fmt.Errorf("a sync of the store has failed, and it must be opened anew: %w", *err)
	}
	return nil
}
