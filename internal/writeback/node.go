package writeback

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// node is an object with open files.
type node struct {
	s    *shared
	h    vfs.Handle
	size int // of a WRITE

	opens int // guarded by shared.mu

	mu       sync.Mutex
	cond     *sync.Cond // something has changed
	files    map[*file]struct{}
	pieces   []*piece // disjoint, in order
	ready    []*piece // queued ones, oldest first; others among them are skipped
	tail     *piece   // the queued piece that the next write may append to
	barriers []*span  // of calls below that no WRITE may overlap
	flying   int
	seq      uint64 // counts what happens to pieces
}

// await waits until ready holds, or ctx ends. n.mu is held before and after.
func (n *node) await(ctx context.Context, ready func() bool) error {
	if ready() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.cond.Broadcast()
	})
	defer stop()
	for !ready() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n.cond.Wait()
	}
	return nil
}

// next counts. n.mu is held.
func (n *node) next() uint64 {
	n.seq++
	return n.seq
}

// end is where the dirty bytes end.
func (n *node) end() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dirtyEnd()
}

func (n *node) dirtyEnd() uint64 {
	if len(n.pieces) == 0 {
		return 0
	}
	return n.pieces[len(n.pieces)-1].end()
}

// closeTail lets the tail be sent as it is. n.mu is held.
func (n *node) closeTail() {
	if n.tail != nil {
		n.ready = append(n.ready, n.tail)
		n.tail = nil
	}
}

// blocked reports whether a barrier, or a piece in flight, has bytes in
// [from, to). n.mu is held.
func (n *node) blocked(from, to uint64) bool {
	for _, p := range n.overlapping(from, to) {
		if p.state == inFlight {
			return true
		}
	}
	return n.barred(from, to)
}

func (n *node) barred(from, to uint64) bool {
	for _, b := range n.barriers {
		if b.from < to && from < b.to {
			return true
		}
	}
	return false
}

// drain sends what is dirty in [from, to) and waits until it is sent. That a
// WRITE failed is told by the files, not here.
func (n *node) drain(ctx context.Context, from, to uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.awaitSent(ctx, from, to, n.seq)
}

// awaitSent waits until of the pieces in [from, to) that were born up to born
// none is queued or in flight. n.mu is held.
func (n *node) awaitSent(ctx context.Context, from, to, born uint64) error {
	n.closeTail()
	n.pump()
	return n.await(ctx, func() bool {
		for _, p := range n.overlapping(from, to) {
			if p.born <= born && (p.state == queued || p.state == inFlight) {
				return false
			}
		}
		return true
	})
}

// fence runs call, which changes bytes of [from, to) below, while nothing there
// is in flight: first what is dirty there is sent. call returns the range that
// it has overwritten or cut; what is dirty in that is dropped.
func (n *node) fence(ctx context.Context, from, to uint64, call func() (uint64, uint64, error)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.awaitSent(ctx, from, to, n.seq); err != nil {
		return err
	}
	if err := n.await(ctx, func() bool { return !n.blocked(from, to) }); err != nil {
		return err
	}
	barrier := &span{from, to}
	n.barriers = append(n.barriers, barrier)
	n.mu.Unlock()
	lo, hi, err := call()
	n.mu.Lock()
	n.lift(barrier)
	if lo < hi {
		n.cut(lo, hi)
	}
	n.pump()
	n.cond.Broadcast()
	return err
}

func (n *node) lift(barrier *span) {
	for i, b := range n.barriers {
		if b == barrier {
			n.barriers = append(n.barriers[:i], n.barriers[i+1:]...)
			return
		}
	}
}

// pump starts WRITEs as long as there may be more in flight. n.mu is held.
func (n *node) pump() {
	var later []*piece
	for n.flying < maxInFlight && len(n.ready) > 0 {
		p := n.ready[0]
		n.ready = n.ready[1:]
		if p.state != queued {
			continue
		}
		if n.barred(p.off, p.end()) {
			later = append(later, p)
			continue
		}
		p.state = inFlight
		n.flying++
		go n.send(p)
	}
	n.ready = append(later, n.ready...)
}

// send writes p, which does not change meanwhile.
func (n *node) send(p *piece) {
	w, err := p.file.sendAll(p.buf.B, p.off)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flying--
	p.state, p.done, p.verf = written, n.next(), w.Verf
	switch {
	case err != nil:
		n.fail(fmt.Errorf("writing %d bytes at %d behind: %w", len(p.buf.B), p.off, err))
		n.remove(func(q *piece) bool { return q == p })
	case w.Committed != vfs.Unstable:
		n.remove(func(q *piece) bool { return q == p })
	}
	n.pump()
	n.cond.Broadcast()
}

// fail leaves err with every open file that has none. n.mu is held.
func (n *node) fail(err error) {
	for f := range n.files {
		if f.err == nil {
			f.err = err
		}
	}
}

// commit makes everything stable that is dirty now. Errors of WRITEs are told
// by the files; what is returned is why COMMIT itself was of no use.
func (n *node) commit(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	born := n.seq
	for range maxRounds {
		if err := n.awaitSent(ctx, 0, math.MaxUint64, born); err != nil {
			return err
		}
		f := n.committer(born)
		if f == nil {
			return nil
		}
		again, err := n.commitOnce(ctx, f)
		if err != nil || !again {
			return err
		}
	}
	err := fmt.Errorf("the server's write verifier changed during %d commits in a row: %w", maxRounds, vfs.ErrIO)
	n.fail(err)
	return err
}

// committer returns a file through which something was written that was born up
// to born, or nil if nothing is left. n.mu is held.
func (n *node) committer(born uint64) *file {
	for _, p := range n.pieces {
		if p.born <= born {
			return p.file
		}
	}
	return nil
}

// commitOnce sends a COMMIT and compares its verifier with that of every WRITE
// that was answered before. It queues what was lost, and reports whether
// anything was. n.mu is held, but not during the call.
func (n *node) commitOnce(ctx context.Context, f *file) (again bool, err error) {
	mark := n.seq
	f.users++
	n.mu.Unlock()
	w, err := f.commitBelow(ctx)
	n.mu.Lock()
	f.users--
	defer n.cond.Broadcast()
	if err != nil {
		if ctx.Err() == nil && f.ctx.Err() != nil {
			return true, nil // f was closed meanwhile: another file may do it
		}
		if ctx.Err() == nil {
			err = fmt.Errorf("commit: %w", err)
			n.fail(err)
		}
		return false, err
	}
	n.remove(func(p *piece) bool {
		return p.state == written && p.done <= mark && p.verf == w.Verf
	})
	for _, p := range n.pieces {
		if p.state == written && p.done <= mark {
			p.state = queued
			n.ready = append(n.ready, p)
			again = true
		}
	}
	return again, nil
}

// commitBelow sends a COMMIT, which ends with ctx or when f is given up.
func (f *file) commitBelow(ctx context.Context) (w vfs.Written, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	err = f.inner.Commit(ctx, 0, 0, &w)
	return w, err
}

// firstError is the first error that an open file has.
func (n *node) firstError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for f := range n.files {
		if f.err != nil {
			return f.err
		}
	}
	return nil
}
