package writeback

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// node is an object with open files.
type node struct {
	s     *shared
	h     vfs.Handle
	wsize int // of a WRITE, a power of two

	turn chan struct{} // full while a call appends

	// Guarded by shared.mu.
	opens   int
	place   *list.Element // in shared.queue; nil if nothing is dirty, or a flush is under way
	charged int64         // memory of its pieces, in bytes

	mu       sync.Mutex
	cond     *sync.Cond // something has changed
	files    map[*file]struct{}
	pieces   []*piece // disjoint, in order
	ready    []*piece // to be sent, oldest first; pump skips those that are not queued any more
	tails    []*piece // queued ones that a next write may append to, oldest first
	barriers []*span  // of calls below that no WRITE may overlap
	flying   int      // WRITEs
	seq      uint64   // counts what happens to pieces
	over     error    // set when the FS is closed

	verf     vfs.Verifier // the last one
	verified bool         // there was one
	turned   uint64       // when it was seen to change, by seq

	failing time.Time // since when no WRITE or COMMIT has been answered; zero if they are, or nothing is left to be stored
	success time.Time // when one was answered last

	uncommitted int64         // bytes written since the last COMMIT was sent
	commits     []*commitCall // in flight, as they were sent
	flushing    bool          // a flush is under way
	timer       *time.Timer

	stableAt atomic.Uint64 // shared.stableCount when bytes of it became stable last; set under mu

	// dirty says that there are pieces; changed keeps it so, under mu. It may be read
	// without mu: a read that begins after a write was accepted never finds false while the
	// write's bytes are dirty. A call that finds true takes mu.
	dirty atomic.Bool
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

// changed wakes all calls that wait, and has the timer run while there is
// something dirty. n.mu is held.
func (n *node) changed() {
	if dirty := len(n.pieces) > 0; dirty != n.dirty.Load() {
		n.dirty.Store(dirty)
		n.s.enlist(n, dirty && !n.flushing)
		if dirty {
			n.wind(maxAge)
		} else {
			n.timer.Stop()
			n.failing = time.Time{}
		}
	}
	n.cond.Broadcast()
}

// wind lets the timer flush after d. n.mu is held.
func (n *node) wind(d time.Duration) {
	if n.timer == nil {
		n.timer = time.AfterFunc(d, n.flushNow)
		return
	}
	n.timer.Reset(d)
}

// next returns the next number of n.seq. n.mu is held.
func (n *node) next() uint64 {
	n.seq++
	return n.seq
}

// grow makes the size in attr, if there is one, include the dirty bytes. attr is of a reply to a
// call that was made when shared.stableCount was since. Bytes that have become stable after that
// are dirty no more, and the server may have answered before it got them. Then attr loses its size
// and grow returns false: a caller that needs the size asks again.
func (n *node) grow(since uint64, attr *vfs.Attr) bool {
	if !attr.Has(vfs.MaskSize) {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	attr.Size = max(attr.Size, n.dirtyEnd())
	if n.stableAt.Load() > since {
		attr.Valid &^= vfs.MaskSize
		return false
	}
	return true
}

// becameStable is called when pieces have become stable, before they are dropped: see grow.
// n.mu is held.
func (n *node) becameStable() { n.stableAt.Store(n.s.stableCount.Add(1)) }

// replaced is called when other bytes are stable at [from, to).
func (n *node) replaced(from, to uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.overlapping(from, to)) > 0 {
		n.becameStable()
	}
}

func (n *node) dirtyEnd() uint64 {
	if len(n.pieces) == 0 {
		return 0
	}
	return n.pieces[len(n.pieces)-1].end()
}

// closeTails lets the tails be sent as they are. n.mu is held.
func (n *node) closeTails() {
	n.ready = append(n.ready, n.tails...)
	n.tails = n.tails[:0]
}

// blocked reports whether a barrier, or a piece in flight, has bytes in
// [from, to). n.mu is held.
func (n *node) blocked(from, to uint64) bool { return n.sending(from, to) || n.barred(from, to) }

// sending reports whether a piece in flight has bytes in [from, to). n.mu is held.
func (n *node) sending(from, to uint64) bool {
	for _, p := range n.overlapping(from, to) {
		if p.state == inFlight {
			return true
		}
	}
	return false
}

func (n *node) barred(from, to uint64) bool {
	for _, b := range n.barriers {
		if b.from < to && from < b.to {
			return true
		}
	}
	return false
}

// drain sends what is dirty in [from, to) and waits until it is sent. Errors of WRITEs stay with
// the files.
func (n *node) drain(ctx context.Context, from, to uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.awaitSent(ctx, from, to, n.seq)
}

// awaitSent has everything sent, and waits until no piece in [from, to) that was born up to born
// is queued or in flight. n.mu is held.
func (n *node) awaitSent(ctx context.Context, from, to, born uint64) error {
	n.closeTails()
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

// fence runs call, which changes bytes of [from, to) below. What is dirty there is sent first, and
// nothing there is in flight meanwhile. call returns the range that it has overwritten or cut.
// What is dirty in that range is dropped.
func (n *node) fence(ctx context.Context, from, to uint64, call func() (uint64, uint64, error)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.awaitSent(ctx, from, to, n.seq); err != nil {
		return err
	}
	if err := n.await(ctx, func() bool { return !n.barred(from, to) }); err != nil {
		return err
	}
	// The barrier comes before the wait. Otherwise a caller that goes on writing could keep this
	// call waiting for ever.
	barrier := &span{from, to}
	n.barriers = append(n.barriers, barrier)
	var lo, hi uint64
	err := n.await(ctx, func() bool { return !n.sending(from, to) })
	if err == nil {
		n.mu.Unlock()
		lo, hi, err = call()
		n.mu.Lock()
	}
	n.lift(barrier)
	if lo < hi {
		n.cut(lo, hi)
	}
	n.pump()
	n.changed()
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

// fail leaves err with every open file that has none. n.mu is held.
func (n *node) fail(err error) {
	for f := range n.files {
		if f.err == nil {
			f.err = err
		}
	}
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

// abandon ends what goes on behind the node's open files, with err as the error of
// all that have none, and returns how many dirty bytes are lost with that.
func (n *node) abandon(err error) (lost int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = err
	n.fail(err)
	for f := range n.files {
		f.cancel()
	}
	n.cond.Broadcast()
	for n.flying > 0 || len(n.commits) > 0 {
		n.cond.Wait()
	}
	lost = n.giveUp(func(*piece) bool { return true })
	n.changed()
	return lost
}
