package writeback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// pump starts WRITEs as long as there may be more in flight. n.mu is held.
func (n *node) pump() {
	var later []*piece
	for len(n.ready) > 0 {
		p := n.ready[0]
		if n.flying >= p.file.mostWrites() {
			break
		}
		n.ready = n.ready[1:]
		if p.state != queued {
			continue
		}
		if n.barred(p.off, p.end()) {
			later = append(later, p)
			continue
		}
		p.state, p.sent = inFlight, n.next()
		n.flying++
		go n.send(p)
	}
	if len(later) > 0 {
		n.ready = append(later, n.ready...)
	}
}

// mostWrites is how many WRITEs of the object may be in flight, the next one through f included.
func (f *file) mostWrites() int {
	if f.Near() {
		return nearInFlight
	}
	return maxInFlight
}

// send writes p, which does not change meanwhile.
func (n *node) send(p *piece) {
	w, err := p.file.sendAll(p.buf.B, p.off)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flying--
	if err != nil {
		n.unsent(p, err)
	} else {
		n.answered(p, &w)
	}
	n.pump()
	n.changed()
}

// unsent ends a piece whose WRITE has failed and is not made again. Its bytes are lost, and all
// open files get the error. A WRITE that failed only because Close gave its file up is different:
// Close drops the piece, and returns the error. n.mu is held.
func (n *node) unsent(p *piece, err error) {
	if p.file.ctx.Err() != nil && passing(err) {
		p.state = queued // but not in n.ready, so that it is not sent
		return
	}
	n.fail(fmt.Errorf("writing %d bytes at %d behind: %w", len(p.buf.B), p.off, err))
	n.s.count.lost.Add(uint64(len(p.buf.B)))
	n.drop(p)
}

// answered takes in w, the answer to the WRITE of p. n.mu is held.
func (n *node) answered(p *piece, w *vfs.Written) {
	size := len(p.buf.B)
	n.s.count.written.Add(uint64(size))
	p.state, p.done, p.verf = written, n.next(), w.Verf
	current := n.saw(w.Verf, p.sent)
	switch {
	case w.Committed != vfs.Unstable:
		n.becameStable()
		n.drop(p)
		return
	case !current:
		n.resend(func(q *piece) bool { return q == p })
		return
	}
	n.uncommitted += int64(size)
	if n.uncommitted >= n.s.opt.MaxDirty/commitShare && len(n.commits) < commitShare {
		n.commitBehind()
	}
}

// saw compares the verifier of a reply with the one before. If it is another one, the server may
// have restarted, and lost what it had not stored: all that was written under the old one is
// queued again. sent is when the call was sent. If a newer verifier has been seen since then, the
// reply is out of date: saw returns false, and what the call did is lost. n.mu is held.
func (n *node) saw(verf vfs.Verifier, sent uint64) bool {
	switch {
	case !n.verified:
		n.verf, n.verified, n.turned = verf, true, n.next()
	case verf == n.verf:
	case sent < n.turned:
		return false
	default:
		n.verf, n.turned = verf, n.next()
		n.s.count.changes.Add(1)
		n.resend(func(p *piece) bool { return p.state == written && p.verf != verf })
	}
	return true
}

// resend queues again the pieces for which lost holds. Those that the server has lost maxRounds
// times are given up. n.mu is held.
func (n *node) resend(lost func(*piece) bool) {
	tooOften := false
	for _, p := range n.pieces {
		if !lost(p) {
			continue
		}
		p.state = queued
		p.lost++
		if p.lost < maxRounds {
			n.ready = append(n.ready, p)
			n.s.count.resent.Add(uint64(len(p.buf.B)))
		} else {
			tooOften = true
		}
	}
	if tooOften {
		n.fail(fmt.Errorf("the server's write verifier changed before a commit %d times in a row: %w", maxRounds, vfs.ErrIO))
		n.giveUp(func(p *piece) bool { return p.state == queued && p.lost >= maxRounds })
	}
}

// sendAll writes p below, the tails of short WRITEs included. w holds the weakest
// stability and the first verifier: if the server restarts in between, a later
// COMMIT cannot match it, and all of p is sent again.
func (f *file) sendAll(p []byte, off uint64) (w vfs.Written, err error) {
	for sent := 0; sent < len(p); {
		var one vfs.Written
		var n int
		err := f.n.persist(f.ctx, func(ctx context.Context) (err error) {
			n, err = f.inner.WriteAt(ctx, p[sent:], off+uint64(sent), vfs.Unstable, &one)
			return err
		})
		if err != nil {
			return w, err
		}
		if n <= 0 || n > len(p)-sent {
			return w, fmt.Errorf("a WRITE of %d bytes took %d: %w: %w", len(p)-sent, n, vfs.ErrIO, io.ErrShortWrite)
		}
		if sent == 0 {
			w = one
		}
		w.Committed = min(w.Committed, one.Committed)
		sent += n
	}
	return w, nil
}

// persist makes a call, and again after a pause while it fails for a reason that may pass. It ends
// with ctx, or when the patience with this object has passed. The error is that of the last call.
func (n *node) persist(ctx context.Context, call func(context.Context) error) error {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		start := time.Now()
		try := n.s.newTry(ctx, start, n.deadline(start))
		err := call(try)
		start = try.end()
		if err == nil || !passing(err) {
			n.reached()
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		if failed := n.unreached(start); failed >= n.s.opt.Patience {
			return fmt.Errorf("given up after %v without success: %w", failed.Round(time.Second), err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			n.s.count.retries.Add(1)
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// deadline is when a call that is made at start is given up. All calls of an object have one
// patience together. Once that has passed, each further call gets lastTry.
func (n *node) deadline(start time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failing.IsZero() {
		return start.Add(n.s.opt.Patience)
	}
	end, least := n.failing.Add(n.s.opt.Patience), start.Add(min(lastTry, n.s.opt.Patience))
	if end.Before(least) {
		return least
	}
	return end
}

// reached notes that the server has answered, which ends a time of failures.
func (n *node) reached() {
	now := time.Now()
	n.s.answered.Store(int64(now.Sub(n.s.made)))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing, n.success = time.Time{}, now
}

// lastAnswer is when a WRITE or COMMIT of any object was answered last.
func (s *shared) lastAnswer() time.Time { return s.made.Add(time.Duration(s.answered.Load())) }

// unreached notes the failure of a call that began at start, and returns for how long calls have
// failed. Over a slow link a call may wait in the connection until its deadline, behind calls that
// are answered. So that time counts from the last answer.
func (n *node) unreached(start time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failing.IsZero() {
		n.failing = start
		if n.success.After(start) {
			n.failing = n.success
		}
	}
	return time.Since(n.failing)
}

// passing reports whether the reason of an error may pass: the server is busy, or cannot be
// reached, or what became of the call is not known. A WRITE may be repeated then, as its bytes
// have one owner. What a server has answered as an error stands. Errors that say that nothing was
// answered are looked for first: they may be an I/O error as well, as nfs(5) has it.
func passing(err error) bool {
	if errors.Is(err, vfs.ErrUnknownOutcome) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	status, ok := vfs.StatusOf(err)
	return !ok || status == vfs.ErrBusy
}

// owns reports whether a piece is to be sent through f. n.mu is held.
func (n *node) owns(f *file) bool {
	return slices.ContainsFunc(n.pieces, func(p *piece) bool { return p.file == f })
}

// flies reports whether a WRITE through f is in flight. n.mu is held.
func (n *node) flies(f *file) bool {
	return slices.ContainsFunc(n.pieces, func(p *piece) bool { return p.file == f && p.state == inFlight })
}
