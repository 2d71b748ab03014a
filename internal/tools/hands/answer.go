package hands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/base/wait"
	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/vfs"
)

// workerID is what a worker has chosen at random.
type workerID [16]byte

// worker is a worker that has asked something lately.
type worker struct {
	id   workerID
	name string // it may be anything: to be cleaned before it is shown
	seen time.Time
	owes bool // it may work at files that nobody waits for any more: it has to take leave
	told bool // that the run is over
}

const (
	// heldFor is for how long a batch stays its holder's that is not heard of. It is heard of three times
	// within a lease. After that the batch is whose claim comes next.
	heldFor = queue.LeaseTime * 3 / 4

	// silence is how long no worker at all may be heard of until it is not they who are missed, but the broker, or
	// this machine stood still: see excuse. One that is there is heard of three times within a lease.
	silence = queue.LeaseTime / 2

	// grace is how long a holder may take to be heard of when others are again.
	grace = queue.LeaseTime / 2
)

// maxTold is how many different complaints of workers are told. Further ones are not.
const maxTold = 64

// answer has the questions of workers answered until ctx ends.
func (c *Coordinator) answer(ctx context.Context, dealer queue.Dealer) {
	for {
		err := dealer.Answer(ctx, func(_ context.Context, q []byte) []byte { return c.reply(q) })
		if ctx.Err() != nil {
			return
		}
		c.tellOnce("answer", "workers cannot ask, and the broker is tried again and again: %v", err)
		if wait.For(ctx, dealAgain) != nil {
			return
		}
	}
}

// reply answers a question. Anybody may have asked it.
func (c *Coordinator) reply(q []byte) []byte {
	question, err := wire.Decode[wire.Question](bytes.Clone(q)) // what it says is kept
	a := wire.Answer{Speaks: wire.VERSION, Verdict: wire.DROP}
	var say string
	if other, ok := errors.AsType[*wire.VersionError](err); ok {
		a.Verdict, say = wire.OTHER, "a worker is of another version: "+other.Error()
	} else if err != nil {
		say = "a worker asks what cannot be understood: " + err.Error()
	} else {
		say = c.decide(&question, &a)
	}
	if say != "" && c.mayTell() {
		c.tellOnce(say, "%s", say)
	}
	b, err := a.AppendXDR(nil)
	if err != nil {
		return nil // it has no list that could be too long
	}
	return b
}

// mayTell reports whether anything more that workers cause may be told.
func (c *Coordinator) mayTell() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.told) < maxTold
}

// decide answers a question. say is what the user should be told.
func (c *Coordinator) decide(q *wire.Question, a *wire.Answer) (say string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.excuse(now)
	c.heard = now
	switch q.Matter.Ask {
	case wire.REFUSE:
		r := &q.Matter.Refusal
		a.Verdict, c.refused = wire.GO, true
		return fmt.Sprintf("the worker %s does not take part: %s", r.Who, r.Why)
	case wire.LEAVE:
		a.Verdict = wire.GO
		c.leave(q)
		return ""
	}
	if c.over {
		a.Verdict = wire.OVER
		if w := c.workers[q.Worker]; w != nil {
			w.told = true
		}
		return ""
	}
	if q.Worker == (workerID{}) {
		return "" // no worker has it, and no holder is told by it
	}
	w := c.meet(q)
	if w == nil {
		a.Verdict = wire.WAIT
		return fmt.Sprintf("%d workers take part, and further ones wait", MaxWorkers)
	}
	a.Verdict = wire.GO
	switch q.Matter.Ask {
	case wire.CLAIM:
		a.Verdict, say = c.claim(w, &q.Matter.Claim, a)
	case wire.REPORT:
		a.Verdict, say = c.report(w, &q.Matter.Report)
	case wire.LOST:
		c.announce()
	}
	c.pace(a)
	return say
}

// meet finds the worker that asks, or takes it in; nil if there are enough workers without it.
func (c *Coordinator) meet(q *wire.Question) *worker {
	w := c.workers[q.Worker]
	if w == nil {
		if len(c.workers) >= MaxWorkers {
			return nil
		}
		w = &worker{id: q.Worker}
		c.workers[w.id] = w
	}
	if q.Matter.Ask == wire.HELLO {
		w.name = string(q.Matter.Hello.Who)
	}
	w.seen = time.Now()
	return w
}

// pace divides what the job may do among the workers that have been heard of lately: one that was killed
// keeps no share. The coordinator has calls under way, too.
func (c *Coordinator) pace(a *wire.Answer) {
	if c.o.Pace == nil {
		return
	}
	load, rate := c.o.Pace()
	n := c.alive(time.Now())
	if load > 0 {
		a.Load = uint32(max(load/(n+1), 1))
	}
	if rate > 0 {
		a.Rate = max(rate/uint64(n), throttle.Least)
	}
}

// alive is how many workers have been heard of lately, and 1 if none has.
func (c *Coordinator) alive(now time.Time) (n int) {
	for _, w := range c.workers {
		if now.Sub(w.seen) < heldFor {
			n++
		}
	}
	return max(n, 1)
}

// claim gives a batch to a worker, unless it is done, or another one works at it.
func (c *Coordinator) claim(w *worker, q *wire.Claim, a *wire.Answer) (wire.Verdict, string) {
	b, now := c.batches[q.Batch], time.Now()
	switch {
	case b == nil:
		return wire.DROP, ""
	case b.digest != q.Digest:
		return wire.DROP, "the broker has a batch that this job has not dealt: it is dropped"
	case b.holder == w.id && b.once == q.Once:
		a.Attempt, a.Done = b.attempt, b.doneAlready() // the question has come twice
		return wire.GO, ""
	case b.held() && now.Sub(b.touched) < heldFor: // also by w: the broker has leased it once more
		b.unqueued = true
		return wire.DROP, ""
	case b.vain >= queue.MaxLeases:
		c.giveUp(b)
		return wire.DROP, ""
	}
	b.vain++
	b.attempt++
	b.holder, b.once, b.touched, b.excused, c.claimed = w.id, q.Once, now, false, now
	a.Attempt, a.Done = b.attempt, b.doneAlready()
	return wire.GO, ""
}

// doneAlready has a bit for each file that needs no worker any more.
func (b *batch) doneAlready() (done [wire.FILES / 8]byte) {
	for i, t := range b.tasks {
		if t.over {
			done[i/8] |= 1 << (i % 8)
		}
	}
	return done
}

// report takes over what a worker has done of a batch.
func (c *Coordinator) report(w *worker, q *wire.Report) (wire.Verdict, string) {
	b := c.batches[q.Batch]
	if b == nil || b.holder != w.id || b.attempt != q.Attempt {
		return wire.DROP, ""
	}
	for i := range q.Results {
		if err := c.believable(b, &q.Results[i]); err != nil {
			b.holder = workerID{}
			c.deal(b)
			return wire.DROP, fmt.Sprintf("the worker %s reports what cannot be: %v; another one gets its batch", w.name, err)
		}
	}
	b.touched, b.excused = time.Now(), false
	for i := range q.Results {
		if t := b.tasks[q.Results[i].File]; !t.over {
			b.vain = 0
			c.finish(t)
			t.done <- q.Results[i].Outcome
		}
	}
	switch {
	case b.left == 0:
		return wire.DROP, ""
	case q.Back:
		b.holder, b.vain = workerID{}, max(b.vain-1, 0)
		if b.unqueued {
			c.deal(b)
		}
	}
	return wire.GO, ""
}

// believable returns an error if a result cannot be that of a file of b.
func (c *Coordinator) believable(b *batch, r *wire.Result) error {
	if r.File >= uint32(len(b.tasks)) {
		return fmt.Errorf("file %d of %d", r.File, len(b.tasks))
	}
	switch out := &r.Outcome; out.End {
	case wire.FAILED, wire.DECLINED:
		return nil
	case wire.COPIED:
		res := out.Copied.Result()
		const needed = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime
		switch {
		case b.at.work != wire.COPY:
		case res.Source.Type != vfs.TypeReg || !res.Source.Has(needed):
			return errors.New("a copy of what is no regular file")
		case res.Attr.Has(vfs.MaskSize) && res.Attr.Size != res.Bytes:
			return errors.New("a copy of another size")
		case res.Verified != c.o.Verify:
			return errors.New("a copy that was not made as it was asked for")
		default:
			return nil
		}
	case wire.COMPARED:
		size := b.tasks[r.File].file.Size
		switch cmp := &out.Compared; {
		case b.at.work != wire.COMPARE:
		case cmp.Bytes > size || cmp.Differ && cmp.Offset > size:
			return errors.New("more bytes than the file has")
		default:
			return nil
		}
	case wire.REMOVED:
		if b.at.work == wire.REMOVE {
			return nil
		}
	}
	return errors.New("work that was not asked for")
}

// leave forgets a worker that has ended.
func (c *Coordinator) leave(q *wire.Question) {
	w := c.workers[q.Worker]
	if w == nil {
		return
	}
	delete(c.workers, w.id)
	if c.over {
		c.left += min(uint64(q.Matter.Leave.Left), maxOutstanding)
		signal(c.parted)
	}
	for _, b := range c.batches {
		if b.holder == w.id {
			b.holder = workerID{}
			c.deal(b)
		}
	}
}

// excuse gives those who hold batches time to be heard of, once, when no worker at all was heard of until now. Else
// an outage of the broker would have all that they hold done twice.
func (c *Coordinator) excuse(now time.Time) {
	if now.Sub(c.heard) < silence {
		return
	}
	for _, b := range c.batches {
		if until := now.Add(grace - heldFor); b.held() && !b.excused && b.touched.Before(until) {
			b.touched, b.excused = until, true
		}
	}
}
