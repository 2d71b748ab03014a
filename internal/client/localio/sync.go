package localio

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// dirtiness says what of a file has not been synced since it was written to by
// some descriptor.
type dirtiness uint8

const (
	dirtyMeta dirtiness = iota + 1 // times and such
	dirtyData
)

// flight is a sync of all dirty descriptors of an object. Of these there is one
// at a time, so that what came of it is known, and the verifier changed if need
// be, before the next one can say that all is well: the kernel tells each failure
// once to each descriptor, and has given the bytes up by then.
type flight struct {
	done chan struct{}
	full bool // somebody on board needs more than the data
	err  error
}

func (fl *flight) wait(ctx context.Context) error {
	select {
	case <-fl.done:
		return fl.err
	case <-ctx.Done():
		return fmt.Errorf("localio: sync: %w: %w", vfs.ErrUnknownOutcome, ctx.Err())
	}
}

// wrote takes note that something was written by g, of which the caller is a user.
// If g is dirty already, a call that cleans it from now on syncs these bytes as well.
func (n *node) wrote(g *grant) {
	if g.dirty.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	g.dirty.Store(true)
	n.dirty[g] = dirtyData
}

// touch has the next full sync include g.
func (n *node) touch(g *grant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dirty[g] = max(n.dirty[g], dirtyMeta)
}

// sync makes stable what was written by descriptors before the call; all of the
// metadata too, if full. It joins a flight that begins behind the call, or leads
// one; where nothing is dirty there is nothing to wait for but the flight that has
// taken it. did is false if there was nothing to do.
func (n *node) sync(ctx context.Context, full bool) (did bool, err error) {
	n.mu.Lock()
	if !n.needs(full) {
		running := n.running
		n.mu.Unlock()
		if running == nil {
			return false, nil
		}
		return true, running.wait(ctx)
	}
	if next := n.next; next != nil {
		next.full = next.full || full
		n.mu.Unlock()
		return true, next.wait(ctx)
	}
	own := &flight{done: make(chan struct{}), full: full}
	n.next = own
	if running := n.running; running != nil {
		n.mu.Unlock()
		<-running.done
		n.mu.Lock()
	}
	n.running, n.next = own, nil
	all := n.clean(own.full)
	full = own.full
	n.mu.Unlock()

	n.s.gate.enterSync()
	for _, g := range all {
		own.err = errors.Join(own.err, g.sync(full))
	}
	n.s.gate.leaveSync()
	if own.err != nil {
		n.failed.Store(own)
		n.lost()
	}

	n.mu.Lock()
	n.running = nil
	n.mu.Unlock()
	close(own.done)
	return true, own.err
}

// needs reports whether something is dirty in that sense. n.mu is held.
func (n *node) needs(full bool) bool {
	if full {
		return len(n.dirty) > 0
	}
	for _, d := range n.dirty {
		if d == dirtyData {
			return true
		}
	}
	return false
}

// clean returns the descriptors to sync, which are dirty no more. They stay open:
// a call that closes one syncs it first. n.mu is held.
func (n *node) clean(full bool) (all []*grant) {
	for g, d := range n.dirty {
		switch {
		case full:
			delete(n.dirty, g)
		case d == dirtyData:
			n.dirty[g] = dirtyMeta
		default:
			continue
		}
		g.dirty.Store(false)
		all = append(all, g)
	}
	return all
}
