//go:build linux

package localfs

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// flights let concurrent syncs of one object share the work. A sync covers all
// that happened before it began; a call that comes while one runs waits for the next,
// together with all others that do.
type flights struct {
	mu sync.Mutex
	m  map[vfs.Handle]*lane
}

// lane is the flights of one object: one at a time, so that an error is dealt
// with before the next begins.
type lane struct{ running, next *flight }

type flight struct {
	done chan struct{}
	full bool // someone on board needs more than the data
	err  error
}

func (f *flights) init() { f.m = make(map[vfs.Handle]*lane) }

// join runs sync, or waits for a run of someone else's that begins after the
// call, and returns its error. A call that merely waits gives up with the context.
func (f *flights) join(ctx context.Context, x vfs.Handle, full bool, sync func(full bool) error) error {
	f.mu.Lock()
	l := f.m[x]
	if l == nil {
		l = &lane{}
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
	own := &flight{done: make(chan struct{}), full: full}
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
