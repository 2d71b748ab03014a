package writeback

import (
	"context"
	"fmt"
	"math"
	"slices"
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
			return !left || through != nil && !n.asked()
		})
		switch {
		case err != nil:
			return err
		case through == nil:
			return n.awaitCommits(ctx, n.seq)
		}
		c := n.startCommit(through)
		c.asked = true
		if err := n.awaitCommits(ctx, c.mark); err != nil {
			return err
		}
		if c.err != nil {
			return c.err
		}
	}
}

// asked reports whether a COMMIT is in flight that a call waits for. One is enough:
// calls that come meanwhile share the next. n.mu is held.
func (n *node) asked() bool {
	return slices.ContainsFunc(n.commits, func(c *commitCall) bool { return c.asked })
}

// awaitCommits waits for the COMMITs that were sent up to mark. A server may tell but
// one of them that it could not store something, and the next may seem well. n.mu is
// held.
func (n *node) awaitCommits(ctx context.Context, mark uint64) error {
	return n.await(ctx, func() bool { return len(n.commits) == 0 || n.commits[0].mark > mark })
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

// commitCall is a COMMIT in flight. The node's mutex guards it.
type commitCall struct {
	mark  uint64 // when it was sent
	asked bool   // a call waits for it
	err   error  // why it was of no use
}

// startCommit sends a COMMIT through f for what has been written so far. It goes on
// when no call waits for it any more, until f is given up: if the server could not
// store something it may tell that once, and with the next COMMIT all would seem
// well. n.mu is held.
func (n *node) startCommit(f *file) *commitCall {
	c := &commitCall{mark: n.next()}
	n.commits, n.uncommitted = append(n.commits, c), 0
	f.users.enter() // of a file that is being closed as well
	go func() {
		var w vfs.Written
		err := n.persist(f.ctx, func(ctx context.Context) error { return f.inner.Commit(ctx, 0, 0, &w) })
		n.mu.Lock()
		defer n.mu.Unlock()
		n.commits = slices.DeleteFunc(n.commits, func(other *commitCall) bool { return other == c })
		f.users.leave() // and changed tells
		c.err = n.settle(f, &w, err, c.mark)
		n.changed()
	}()
	return c
}

// settle ends the COMMIT that was sent at mark through f: it compares the verifier
// with that of every WRITE that was answered before, and tells the files if there
// is none. n.mu is held.
func (n *node) settle(f *file, w *vfs.Written, err error, mark uint64) error {
	switch {
	case err == nil:
		n.committed(w, mark)
		return nil
	case f.ctx.Err() != nil && passing(err):
		return nil // f was given up meanwhile: another file may do it
	}
	err = fmt.Errorf("commit: %w", err)
	n.fail(err)
	return err
}

// committed settles what was written before mark, when a COMMIT was sent that
// was answered with w. n.mu is held.
func (n *node) committed(w *vfs.Written, mark uint64) {
	n.s.count.commits.Add(1)
	current := n.saw(w.Verf, mark)
	n.becameStable()
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

// commitBehind sends a COMMIT in the background for what has been written so far, while
// further WRITEs are sent, and beside COMMITs that are in flight: each is for what was
// answered before it was sent, and compared with that alone. That it failed is told by
// the files; what it was for stays dirty. n.mu is held.
func (n *node) commitBehind() {
	if f, _ := n.committer(math.MaxUint64); f != nil {
		n.startCommit(f)
	}
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
	n.s.enlist(n, false)
	go n.flush(time.Now(), n.seq)
}

// flush is the flush that began at start. What cannot be made stable is given
// up: no call is there to try again, and the files have the error.
func (n *node) flush(start time.Time, born uint64) {
	err := n.commit(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.giveUp(func(p *piece) bool { return p.born <= born && p.state == written })
	}
	n.flushing = false
	n.changed()
	if n.dirty.Load() {
		n.s.enlist(n, true) // behind all others
		n.wind(max(0, maxAge-time.Since(start)))
	}
}
