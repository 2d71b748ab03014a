package writeback

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// commit makes everything stable that is dirty now. It returns why a COMMIT failed; errors of
// WRITEs stay with the files. In each round every piece becomes stable, or is lost by the server
// once more, and maxRounds bounds that.
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

// awaitCommits waits for the end of all COMMITs that were sent up to mark. It would not do to wait
// for the last: a server may tell any one of them, and no other, that it could not store
// something. n.mu is held.
func (n *node) awaitCommits(ctx context.Context, mark uint64) error {
	return n.await(ctx, func() bool { return len(n.commits) == 0 || n.commits[0].mark > mark })
}

// committer reports whether a piece is left that was born up to born. If such a piece has been
// written, it returns the file through which that was done, for a COMMIT. Files that are being
// given up do not count. n.mu is held.
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

// startCommit sends a COMMIT through f for what has been written so far. The COMMIT goes on until
// f is given up, also if no call waits for it any more. A server may tell only once that it could
// not store something, and the next COMMIT would succeed. n.mu is held.
func (n *node) startCommit(f *file) *commitCall {
	c := &commitCall{mark: n.next()}
	n.commits, n.uncommitted = append(n.commits, c), 0
	f.users.enter() // also if f is being closed
	go func() {
		var w vfs.Written
		err := n.persist(f.ctx, func(ctx context.Context) error { return f.inner.Commit(ctx, 0, 0, &w) })
		n.mu.Lock()
		defer n.mu.Unlock()
		n.commits = slices.DeleteFunc(n.commits, func(other *commitCall) bool { return other == c })
		f.users.leave() // n.changed wakes a Close that waits
		c.err = n.settle(f, &w, err, c.mark)
		n.changed()
	}()
	return c
}

// settle ends the COMMIT that was sent through f at mark, and answered with w or failed with err.
// It returns the error of a COMMIT that was of no use, and leaves it with the files. n.mu is held.
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

// committed takes in the answer w to a COMMIT that was sent at mark. What was written before mark,
// with the same verifier, is stable. What was written before mark with another one is sent again.
// n.mu is held.
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

// commitBehind sends a COMMIT in the background for what has been written so far. Further WRITEs
// and earlier COMMITs go on beside it. Each COMMIT is compared only with WRITEs that were answered
// before it was sent. If it fails, the files have the error, and what it was for stays dirty. n.mu
// is held.
func (n *node) commitBehind() {
	if f, _ := n.committer(math.MaxUint64); f != nil {
		n.startCommit(f)
	}
}

// flushNow makes what is dirty stable, in the background. One such flush of an object runs at a
// time. What becomes dirty meanwhile is for the next.
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

// flush makes stable what was born up to born; it began at start. What a COMMIT could not make
// stable is given up: no call is there to try again, and the files have the error.
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
