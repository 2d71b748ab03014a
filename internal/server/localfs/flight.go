//go:build linux

package localfs

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// syncGroups let concurrent syncs of one object share the work. A sync covers all that
// happened before it began. A call that comes while one runs waits for the next, together
// with all others that do.
type syncGroups struct {
	mu sync.Mutex
	m  map[vfs.Handle]*syncQueue
}

// syncQueue are the syncs of one object: one at a time, so that an error is dealt with
// before the next begins.
type syncQueue struct{ running, next *syncRun }

type syncRun struct {
	done chan struct{}
	full bool // one of the calls needs more than the data
	err  error
}

func (f *syncGroups) init() { f.m = make(map[vfs.Handle]*syncQueue) }

// join runs sync, or waits for a run by another call that begins after this one came, and
// returns its error. A call that merely waits gives up with the context.
func (f *syncGroups) join(ctx context.Context, x vfs.Handle, full bool, sync func(full bool) error) error {
	f.mu.Lock()
	l := f.m[x]
	if l == nil {
		l = &syncQueue{}
		f.m[x] = l
	}
	if n := l.next; n != nil {
		n.full = n.full || full
		f.mu.Unlock()
		select {
		case <-n.done:
			return n.err
		case <-ctx.Done():
			return fmt.Errorf("localfs: sync: %w: %w", vfs.ErrUnknownOutcome, ctx.Err())
		}
	}
	own := &syncRun{done: make(chan struct{}), full: full}
	l.next = own
	if r := l.running; r != nil {
		f.mu.Unlock()
		<-r.done
		f.mu.Lock()
	}
	l.running, l.next = own, nil
	full = own.full
	f.mu.Unlock()

	own.err = sync(full)

	f.mu.Lock()
	l.running = nil
	if l.next == nil {
		delete(f.m, x)
	}
	f.mu.Unlock()
	close(own.done)
	return own.err
}
