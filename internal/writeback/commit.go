package writeback

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// commit makes everything stable that is dirty now. Errors of WRITEs are told by
// the files; what is returned is why COMMIT itself was of no use. Each round
// makes every piece of them stable, or counts it as lost once more.
func (n *node) commit(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	born := n.seq
	for {
		if err := n.awaitSent(ctx, 0, math.MaxUint64, born); err != nil {
			return err
		}
		var through *file
		err := n.await(ctx, func() bool {
			var left bool
			through, left = n.committer(born)
			return !left || through != nil && !n.committing
		})
		if err != nil || through == nil {
			return err
		}
		if err := n.commitOnce(ctx, through); err != nil {
			return err
		}
	}
}

// committer reports whether a piece is left that was born up to born, and
// returns a file through which one was written that is not being given up, or
// nil. n.mu is held.
func (n *node) committer(born uint64) (through *file, left bool) {
	for _, p := range n.pieces {
		if p.born > born {
			continue
		}
		left = true
		if p.state == written && p.file.ctx.Err() == nil {
			return p.file, true
		}
	}
	return nil, left
}

// commitOnce sends a COMMIT and compares its verifier with that of every WRITE
// that was answered before. What was lost is queued. n.mu is held, but not
// during the call; no other COMMIT is in flight.
func (n *node) commitOnce(ctx context.Context, f *file) error {
	mark := n.next()
	n.committing, n.uncommitted = true, 0
	f.users++
	n.mu.Unlock()
	w, err := f.commitBelow(ctx)
	n.mu.Lock()
	n.committing = false
	f.users--
	defer n.changed()
	switch {
	case err == nil:
		n.committed(&w, mark)
	case ctx.Err() != nil:
		return ctx.Err()
	case f.ctx.Err() != nil: // f was closed meanwhile: another file may do it
	default:
		err = fmt.Errorf("commit: %w", err)
		n.fail(err)
		return err
	}
	return nil
}

// committed settles what was written before mark, when a COMMIT was sent that
// was answered with w. n.mu is held.
func (n *node) committed(w *vfs.Written, mark uint64) {
	n.s.count.commits.Add(1)
	current := n.saw(w.Verf, mark)
	n.remove(func(p *piece) bool {
		return p.state == written && p.done < mark && p.verf == w.Verf
	})
	if current {
		n.resend(func(p *piece) bool {
			return p.state == written && p.done < mark
		})
	}
	n.pump()
}

// commitBelow sends a COMMIT, again if need be, until ctx or the patience ends,
// or f is given up.
func (f *file) commitBelow(ctx context.Context) (w vfs.Written, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	err = f.n.persist(ctx, func(ctx context.Context) error { return f.inner.Commit(ctx, 0, 0, &w) })
	return w, err
}

// commitBehind sends a COMMIT in the background for what has been written so
// far, while further WRITEs are sent. That it failed is told by the files; what
// it was for stays dirty. n.mu is held.
func (n *node) commitBehind() {
	f, _ := n.committer(math.MaxUint64)
	if f == nil {
		return
	}
	n.committing = true
	f.users++
	go func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		f.users--
		_ = n.commitOnce(f.ctx, f) // the files have been told
	}()
}

// flushNow makes what is dirty stable, in the background. There is one such
// flush of an object at a time; what becomes dirty meanwhile is for the next.
func (n *node) flushNow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flushing || len(n.pieces) == 0 {
		return
	}
	n.flushing = true
	go n.flush(time.Now(), n.seq)
}

// flush is the flush that began at start. What cannot be made stable is given
// up: nobody is there to try again, and the files have been told.
func (n *node) flush(start time.Time, born uint64) {
	err := n.commit(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.giveUp(func(p *piece) bool { return p.born <= born && p.state == written })
	}
	n.flushing = false
	n.changed()
	if n.dirty {
		n.s.enlist(n, true) // behind all others
		n.wind(max(0, maxAge-time.Since(start)))
	}
}
