package localio

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// dirtiness says what must be synced after a write by a descriptor.
type dirtiness uint8

const (
	dirtyMeta dirtiness = iota + 1 // times and other metadata
	dirtyData
)

// flight is a sync of all dirty descriptors of an object. Only one runs at a time: its result
// is known, and the verifier changed if necessary, before the next one can succeed. The kernel
// reports each failure once to each descriptor, and has dropped the bytes by then.
type flight struct {
	done chan struct{}
	full bool // a caller needs more than the data
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

// wrote notes that g was written to. The caller is a user of g. If g is dirty already, the next
// sync of g includes these bytes.
func (n *node) wrote(g *grant) {
	if g.dirty.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	g.dirty.Store(true)
	n.dirty[g] = dirtyData
}

// touch makes the next full sync include g.
func (n *node) touch(g *grant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dirty[g] = max(n.dirty[g], dirtyMeta)
}

// sync makes stable what was written by descriptors before the call, with all metadata if full.
// It joins a flight that begins after the call, or leads one. If nothing is dirty, it only
// waits for a running flight. did is false if there was nothing to do.
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

// needs reports whether something is dirty, metadata included if full. n.mu is held.
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

// clean returns the descriptors to sync, and clears their marks. They stay open: a call that
// closes one syncs it first. n.mu is held.
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
