package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

const (
	// reportFiles and reportAfter are when files that are done are reported: so many, or the first of
	// them so long ago. A kill costs these a second copy.
	reportFiles = 32
	reportAfter = 25 * time.Millisecond

	// beat is how often a batch's lease is extended, and the coordinator told that it is worked at.
	beat = queue.LeaseTime / 3

	// trust is how long after the coordinator was asked a batch that it has left to this worker is begun with further files.
	// A batch whose worker is not heard of gets another one. That removes the temporaries of this one, and none must come
	// later. It is more than a beat, and well below the time after which the coordinator gives a batch away.
	trust = queue.LeaseTime / 2
)

// work is a batch under way.
type work struct {
	*run
	lease   *queue.Lease
	batch   wire.Batch
	attempt uint32
	sure    term             // for how long the batch is surely this worker's
	done    chan wire.Result // files that have ended
}

// batch works at a leased batch. Its files count as ahead already.
func (r *run) batch(ctx context.Context, l *queue.Lease, b wire.Batch) {
	asked := time.Now()
	a, err := r.ask(ctx, wire.Matter{Ask: wire.CLAIM, Claim: wire.Claim{Batch: l.ID, Digest: sha256.Sum256(l.Body), Once: r.claims.Add(1)}})
	if err != nil || a.Verdict != wire.GO {
		r.ahead.add(-len(b.Files))
		r.settle(ctx, l, err == nil && a.Verdict == wire.DROP)
		return
	}
	w := &work{run: r, lease: l, batch: b, attempt: a.Attempt, done: make(chan wire.Result, len(b.Files))}
	w.sure.extend(asked.Add(trust))
	var left []int
	for i := range b.Files {
		if a.Done[i/8]&(1<<(i%8)) == 0 {
			left = append(left, i)
		}
	}
	r.ahead.add(len(left) - len(b.Files))
	r.settle(ctx, l, w.run1(ctx, left))
}

// run1 works at the files that are left of the batch. It reports whether the coordinator knows of all.
func (w *work) run1(ctx context.Context, left []int) (all bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var files sync.WaitGroup
	files.Go(func() {
		defer close(w.done)
		w.files(ctx, left)
	})
	defer files.Wait()
	defer cancel()
	return w.report(ctx, len(left))
}

// files begins with one file after the other, as the worker has hands free, and waits for all. When the
// worker shall end it begins with no more.
func (w *work) files(ctx context.Context, left []int) {
	s, err := w.find(ctx, w.lease.ID, &w.batch, w.attempt)
	var all sync.WaitGroup
	defer all.Wait()
	for n, i := range left {
		if err != nil && ctx.Err() == nil {
			w.done <- wire.Result{File: uint32(i), Outcome: wire.Declined(err.Error())}
			w.ahead.add(-1)
			continue
		}
		if !w.free(ctx) {
			w.ahead.add(n - len(left))
			return
		}
		w.ahead.add(-1)
		all.Go(func() {
			defer func() { <-w.slots }()
			out := w.file(ctx, w.batch.Work, &s, &w.batch.Files[i])
			if ctx.Err() == nil {
				w.done <- wire.Result{File: uint32(i), Outcome: out}
			} else if errors.Is(context.Cause(ctx), errEnded) {
				w.left.Add(int64(len(out.Failed.Left) + len(out.Copied.Left)))
			}
		})
	}
}

// free waits until the worker has a hand free for a file, the coordinator answers, and the batch is surely the worker's.
// A file that waits for that keeps no hand from other jobs. It reports whether a file may be begun, which takes an element from slots
// in the end.
func (w *work) free(ctx context.Context) bool {
	for w.voice.pass(ctx) == nil && w.sure.pass(ctx) == nil {
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		case <-w.soft.Done():
			return false
		}
		if ctx.Err() == nil && w.soft.Err() == nil && w.voice.isOpen() && w.sure.runs() {
			return true
		}
		<-w.slots
		if w.soft.Err() != nil {
			return false
		}
	}
	return false
}

// report tells the coordinator of the files that are done, until all n are, or no more come, or it does
// not want to know. It reports whether the coordinator knows of all.
func (w *work) report(ctx context.Context, n int) (all bool) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	var pending []wire.Result
	var soon <-chan time.Time
	for {
		open, now := true, false
		select {
		case res, ok := <-w.done:
			if open = ok; ok {
				pending = append(pending, res)
				n--
			}
			if soon == nil {
				soon = time.After(reportAfter)
			}
		case <-soon:
			now = true
		case <-tick.C:
			now = true
			w.extend(ctx)
		case <-ctx.Done():
			return false
		}
		if open && !now && n > 0 && len(pending) < reportFiles {
			continue
		}
		asked := time.Now()
		a, err := w.ask(ctx, wire.Matter{Ask: wire.REPORT, Report: wire.Report{
			Batch: w.lease.ID, Attempt: w.attempt, Back: !open && n > 0, Results: pending,
		}})
		if err != nil {
			return false
		}
		pending, soon = pending[:0], nil
		if a.Verdict == wire.GO {
			w.sure.extend(asked.Add(trust))
		}
		if a.Verdict != wire.GO || !open || n == 0 {
			return a.Verdict == wire.DROP || n == 0
		}
	}
}

// extend extends the lease. If it cannot, the broker may lease the batch to another worker, to which the
// coordinator does not give it.
func (w *work) extend(ctx context.Context) {
	if err := w.taker.Extend(ctx, w.lease); err != nil {
		w.log.Debug("extend a lease", "error", err)
	}
}

// settle gives a lease back, also after ctx has ended. If it cannot, the broker leases the batch again,
// and the coordinator says what is left of it.
func (r *run) settle(ctx context.Context, l *queue.Lease, done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := r.taker.Settle(ctx, l, done); err != nil {
		r.log.Debug("settle a batch", "error", err)
	}
}

// settleTime bounds how long a lease is given back.
const settleTime = 2 * time.Second
