package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/base/wait"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/idmap"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxBatches is how many batches of a run a worker has at once. At the bound it takes no more.
	maxBatches = 32
	// again is the time between attempts at what the broker does not do.
	again = time.Second
	// patience is for how long a coordinator that does not answer is asked. Then the run is left.
	patience = queue.LeaseTime
	// hushAfter is how long a question may wait for its answer before no more files are begun. Most are answered in a
	// few milliseconds. One that a coordinator had before it was killed waits for queue.AskTime, and what
	// is copied meanwhile is copied again.
	hushAfter = 2 * reportAfter
	// lostPatience is patience where the broker does not have the run's queue either: mostly the run has ended. But the
	// coordinator may only be slower to find a broker that was away and has lost all.
	lostPatience = 2 * time.Second
)

var (
	// errOver says that a run has no coordinator any more.
	errOver = errors.New("the job has ended, or its coordinator is gone")
	// errEnded says that the coordinator has ended a run, and waits for the worker's leave.
	errEnded = errors.New("the job has ended")
)

// run is a worker's part in the run of a job.
type run struct {
	*Worker
	log   *slog.Logger
	job   queue.Job
	id    [16]byte // of this part: what an earlier one has asked is another's
	spec  *hands.Spec
	taker queue.Taker

	src, dst *tree
	from     vfs.FS // the source, with the owners that copies get
	t        transfer.Options
	limit    *throttle.Throttle

	share  wire.Answer     // what the coordinator has said at first
	voice  gate            // open while the coordinator answers: no file is begun that nobody may hear of
	silent atomic.Bool     // it was told that the coordinator does not answer
	lost   atomic.Bool     // the broker does not have the run's queue any more
	soft   context.Context // ends when the worker is to begin with nothing more
	end    context.CancelCauseFunc
	ahead  backlog
	claims atomic.Uint64
	load   atomic.Int64 // that the places have
	left   atomic.Int64 // temporaries that could not be removed when the run was ended
}

// join takes part in a run until it ends, or the worker does. What is refused is told on both sides.
func (w *Worker) join(hard, soft context.Context, j queue.Job) (err error) {
	hard, end := context.WithCancelCause(hard)
	defer end(nil)
	taker, err := w.o.Broker.Join(hard, j)
	if err != nil {
		return err
	}
	r := &run{Worker: w, job: j, taker: taker, soft: soft, end: end, log: w.o.Log.With("job", j.Name)}
	if _, err := io.ReadFull(w.o.Random, r.id[:]); err != nil {
		return fmt.Errorf("identity of the worker: %w", err)
	}
	defer func() { err = errors.Join(err, r.src.close(), r.dst.close()) }()
	if err = r.judge(); err == nil {
		if err = r.greet(hard); err != nil {
			return r.cause(hard, err)
		}
		err = r.open(hard)
	}
	if err != nil {
		r.refuse(hard, err)
		return &refusedError{err}
	}
	r.log.Info("joined", "command", r.spec.Command, "run", j.Run)
	return r.cause(hard, r.work(hard))
}

// cause is why a run was left: what has ended ctx, or else err.
func (r *run) cause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// refusedError says that a worker does not take part in a run.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// judge refuses a job that this program does not know, or that works where the worker must not.
func (r *run) judge() (err error) {
	if r.spec, err = hands.ParseSpec(r.job.Spec); err != nil {
		return err
	}
	for _, p := range [...]*hands.Place{r.spec.Source, &r.spec.Dest} {
		if p == nil {
			continue
		}
		if _, _, err := find(r.o.Allow, p); err != nil {
			return err
		}
	}
	return nil
}

// open opens the job's trees.
func (r *run) open(ctx context.Context) error {
	owners, err := idmap.Parse(r.spec.MapUID, r.spec.MapGID)
	if err != nil {
		return fmt.Errorf("%w: %w", hands.ErrSpec, err)
	}
	if r.dst, err = openTree(ctx, r.o.Open, r.o.Allow, &r.spec.Dest); err != nil {
		return err
	}
	from := r.dst
	if r.spec.Source != nil {
		if r.src, err = openTree(ctx, r.o.Open, r.o.Allow, r.spec.Source); err != nil {
			return err
		}
		r.from, from = owners.Of(r.src.fs), r.src
	}
	chunk, err := transfer.Chunk(ctx, transfer.Source{FS: from.fs, Handle: from.root.handle}, transfer.Target{FS: r.dst.fs, Dir: r.dst.root.handle})
	if err != nil {
		return err
	}
	r.limit = throttle.New(r.o.MaxRate)
	r.t = transfer.Options{
		Pool: r.o.Pool, Random: r.o.Random, Tag: r.spec.Tag, Chunk: chunk, Budget: r.budget, Throttle: r.limit, Verify: r.spec.Verify,
	}
	if r.spec.Owner {
		r.t.Owners = &transfer.Owners{}
	}
	return nil
}

// refuse tells the coordinator why the worker does not take part. One that has just opened its queue may answer a little
// later. It may not hear it.
func (r *run) refuse(ctx context.Context, why error) {
	m := wire.Matter{Ask: wire.REFUSE, Refusal: wire.Refusal{Who: r.who(), Why: wire.Text(why.Error())}}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_, err := r.askOnce(ctx, &m)
	for errors.Is(err, queue.ErrNobody) && wait.For(ctx, again) == nil {
		_, err = r.askOnce(ctx, &m)
	}
	if err != nil {
		r.log.Debug("tell the coordinator", "error", err)
	}
}

// work takes batches until the run ends, or no more shall be begun. Then it waits for those under way,
// and takes leave.
func (r *run) work(ctx context.Context) error {
	r.load.Store(-1)
	r.follow(&r.share) // with the trees open
	var all sync.WaitGroup
	taking, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(r.soft, stop)()
	all.Go(func() { r.attend(taking) })
	err := r.take(taking, ctx, &all)
	stop()
	all.Wait()
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), errEnded) {
		r.leave(context.WithoutCancel(ctx))
	}
	if r.soft.Err() != nil {
		return r.soft.Err()
	}
	return err
}

// leave tells the coordinator that the worker is gone. It finds that out by itself, if it does not hear it.
func (r *run) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	m := wire.Matter{Ask: wire.LEAVE, Leave: wire.Leave{Left: uint32(r.left.Load())}}
	if _, err := r.askOnce(ctx, &m); err != nil {
		r.log.Debug("take leave", "error", err)
	}
}

// greet tells the coordinator that the worker is there, and waits while there are enough. A run without a
// coordinator is left at once.
func (r *run) greet(ctx context.Context) error {
	m := r.hello()
	a, err := r.askOnce(ctx, &m)
	if err == nil && a.Verdict == wire.WAIT {
		r.log.Info("waits: there are workers enough")
	}
	for err == nil && a.Verdict == wire.WAIT {
		if err = wait.For(r.soft, beat); err == nil {
			a, err = r.ask(ctx, r.hello())
		}
	}
	if err == nil {
		err = ends(&a)
	}
	r.share = a
	return err
}

// attend tells the coordinator, three times within a lease, that the worker is there.
func (r *run) attend(ctx context.Context) {
	for wait.For(ctx, beat) == nil {
		if _, err := r.ask(ctx, r.hello()); err != nil {
			return // ask has ended the run
		}
	}
}

func (r *run) hello() wire.Matter {
	return wire.Matter{Ask: wire.HELLO, Hello: wire.Hello{Who: r.who()}}
}

// who returns the worker's name, within its bound.
func (r *run) who() []byte { return []byte(r.o.Name[:min(len(r.o.Name), wire.WHO)]) }

// take leases batch after batch, each when few files wait for their turn, and works at them in the
// background. Files wait from the lease on: a batch that is claimed by one and could be another worker's
// costs time, and an attempt if this one is killed.
func (r *run) take(taking, ctx context.Context, all *sync.WaitGroup) error {
	slots := make(chan struct{}, maxBatches)
	for {
		select {
		case slots <- struct{}{}:
		case <-taking.Done():
			return taking.Err()
		}
		if err := r.ahead.below(taking, cap(r.slots)); err != nil {
			return err
		}
		l, err := r.taker.Take(taking)
		switch {
		case err == nil:
			r.lost.Store(false)
			r.begin(ctx, l, slots, all)
			continue
		case taking.Err() != nil:
			return taking.Err()
		case errors.Is(err, queue.ErrLost):
			if err := r.queueLost(ctx); err != nil {
				return err
			}
		default:
			r.log.Warn("the broker gives no batch", "error", err)
		}
		<-slots
		if err := wait.For(taking, again); err != nil {
			return err
		}
	}
}

// begin works at a leased item, which anybody may have put there, in the background. It takes an element from slots
// in the end.
func (r *run) begin(ctx context.Context, l *queue.Lease, slots <-chan struct{}, all *sync.WaitGroup) {
	b, err := wire.Decode[wire.Batch](l.Body)
	if err == nil {
		r.ahead.add(len(b.Files))
	}
	all.Go(func() {
		defer func() { <-slots }()
		if err != nil {
			r.log.Warn("the broker has what is no batch: it is dropped", "error", err)
			r.settle(ctx, l, true)
			return
		}
		r.batch(ctx, l, b)
	})
}

// queueLost tells the coordinator that the broker does not have the queue. If that is gone, too, this is the
// run's end. Else the coordinator opens it anew.
func (r *run) queueLost(ctx context.Context) error {
	if r.lost.CompareAndSwap(false, true) {
		r.log.Debug("the broker does not have the job's batches")
	}
	_, err := r.ask(ctx, wire.Matter{Ask: wire.LOST})
	return err
}

// ask puts a question to the coordinator. If it does not answer for the time of patience, or is another
// one, the run ends.
func (r *run) ask(ctx context.Context, m wire.Matter) (wire.Answer, error) {
	var since time.Time
	for {
		hush := time.AfterFunc(hushAfter, func() { r.voice.shut() })
		a, err := r.askOnce(ctx, &m)
		hush.Stop()
		if why := ends(&a); err == nil && why != nil {
			r.end(why)
			return a, errOver
		}
		if err == nil {
			r.voice.open()
			if r.silent.CompareAndSwap(true, false) {
				r.log.Info("the coordinator answers again")
			}
			r.follow(&a)
			return a, nil
		}
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		if since.IsZero() {
			since = time.Now()
			r.voice.shut()
			if !r.lost.Load() && r.silent.CompareAndSwap(false, true) {
				r.log.Warn("the coordinator does not answer, and is asked again", "error", err)
			}
		}
		if waited := time.Since(since); waited > patience || r.lost.Load() && waited > lostPatience {
			r.end(errOver)
			return a, errOver
		}
		if err := wait.For(ctx, again); err != nil {
			return a, err
		}
	}
}

// ends is why an answer ends the run; nil: it does not.
func ends(a *wire.Answer) error {
	switch a.Verdict {
	case wire.OTHER:
		return &wire.VersionError{Speaks: a.Speaks}
	case wire.OVER:
		return errEnded
	}
	return nil
}

// askOnce puts a question to the coordinator once.
func (r *run) askOnce(ctx context.Context, m *wire.Matter) (a wire.Answer, err error) {
	q := wire.Question{Speaks: wire.VERSION, Worker: r.id, Matter: *m}
	b, err := q.AppendXDR(nil)
	if err != nil {
		return a, err
	}
	if b, err = r.taker.Ask(ctx, b); err != nil {
		return a, err
	}
	a, err = wire.Decode[wire.Answer](b)
	if other, ok := errors.AsType[*wire.VersionError](err); ok {
		return wire.Answer{Speaks: other.Speaks, Verdict: wire.OTHER}, nil
	}
	return a, err
}

// follow takes over how much this worker may do, within what its own user has said.
func (r *run) follow(a *wire.Answer) {
	rate := r.o.MaxRate
	if a.Rate > 0 && (rate == 0 || a.Rate < rate) {
		rate = a.Rate
	}
	if r.limit != nil && r.limit.Rate() != max(rate, min(rate, 1)*throttle.Least) {
		r.limit.Set(rate)
	}
	load := r.o.MaxLoad
	if n := int(min(a.Load, maxLoad)); n > 0 && (load == 0 || n < load) {
		load = n
	}
	if r.load.Swap(int64(load)) == int64(load) {
		return
	}
	for _, t := range [...]*tree{r.src, r.dst} {
		if t == nil || t.at == nil {
			continue
		}
		if err := t.at.SetMaxLoad(load); err != nil {
			r.log.Warn("bound the calls under way", "error", err)
		}
	}
}

// maxLoad is the most calls that a coordinator's share may say.
const maxLoad = 1024
