package hands

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// MaxWorkers is how many workers take part in a run. Further ones are told to wait.
	MaxWorkers = 64

	// maxOutstanding is how many files a job has with its workers, in batches that are dealt or
	// filled: 25 KiB each, with the goroutine that waits for it. At the bound the walk waits.
	maxOutstanding = 2048

	// linger is how long a batch waits for company after its last file. While workers have plenty of files it waits for
	// patient: a file comes as another one is done, and each would be a batch by itself.
	linger  = 3 * time.Millisecond
	patient = 50 * time.Millisecond
	plenty  = maxOutstanding / 4

	// maxDealing is how many batches are on their way to the broker at once. Further ones wait.
	maxDealing = 16

	// maxDeclined is how many files that no worker can work at are worked at here at once.
	maxDeclined = 64

	// tendEvery is how often the coordinator looks for batches that are lost, and workers that are gone.
	tendEvery = time.Second

	// dealAgain is the time between attempts to give a batch to a broker that does not take it.
	dealAgain = time.Second

	// goneAfter is after what time a worker counts as gone that has not asked anything. One that
	// waits or works asks three times within a lease.
	goneAfter = 2 * queue.LeaseTime

	// putBackEvery is how often the job's description is put back while no worker takes part, or one has refused it.
	putBackEvery = 5 * time.Second

	// lonely is how often it is told that no worker takes part.
	lonely = 30 * time.Second

	// removeTime bounds the removal of a run's queue, in the end.
	removeTime = 5 * time.Second

	// leaveTime bounds how long workers may take to remove their temporaries when the run is over. What they leave after that,
	// the next run of the job removes.
	leaveTime = 15 * time.Second
)

// ErrGivenUp says that workers have begun with a file again and again, and none has reported it.
var ErrGivenUp = fmt.Errorf("%d workers have begun with it, one after the other, and none has reported it", queue.MaxLeases)

// Options say how to open a Coordinator.
type Options struct {
	Broker queue.Broker
	Job    queue.Job // whose Spec is an encoded Spec
	Verify bool      // copies are read back
	// Pace is what all workers together may do: calls of each class under way, and bytes a second;
	// 0: no bound. nil: there is none.
	Pace func() (load int, rate uint64)
	// Tell is called with what the user should know.
	Tell func(message string)
	// Allow is the command of a worker that takes part, for messages.
	Allow string
}

// Coordinator is Hands that have workers on many machines do the work.
type Coordinator struct {
	o      Options
	ctx    context.Context // of the run
	end    context.CancelFunc
	work   sync.WaitGroup
	hush   context.CancelFunc // has no more questions answered
	talk   sync.WaitGroup
	deals  chan struct{} // holds one element for each batch on its way to the broker
	own    chan struct{} // likewise for each file that is worked at here
	here   atomic.Uint64 // files that no worker could work at
	opened sync.Mutex    // held while the queue is opened anew
	parted chan struct{} // has an element when a worker has taken leave of a run that is over

	mu      sync.Mutex
	dealer  queue.Dealer
	filling map[group]*batch  // batches that wait for company
	batches map[uint64]*batch // batches that are dealt, or about to be
	dealt   int               // files of these that are not over
	lastID  uint64
	workers map[workerID]*worker
	claimed time.Time // when a batch was claimed last
	heard   time.Time // when a worker was heard of last
	told    map[string]bool

	announced  time.Time // when the job's description was put into the queue
	announcing bool
	refused    bool // a worker has refused it since

	over bool   // what workers ask is answered by OVER
	left uint64 // temporaries of workers that could not be removed when it was over
}

// ErrBusy says that another coordinator has the job.
var ErrBusy = errors.New("the job is under way: another coordinator answers its workers")

// busyTime is how long another coordinator of the job may take to answer. Then there is none.
const busyTime = 2 * time.Second

// busy returns ErrBusy if a coordinator of another run of the job answers.
func busy(ctx context.Context, o *Options) error {
	runs, err := o.Broker.Jobs(ctx)
	if err != nil {
		return err
	}
	q := wire.Question{Speaks: wire.VERSION, Matter: wire.Matter{Ask: wire.LEAVE}} // nothing comes of it
	text, err := q.AppendXDR(nil)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.Name != o.Job.Name || run.Run == o.Job.Run {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, busyTime)
		taker, err := o.Broker.Join(asking, run)
		if err == nil {
			_, err = taker.Ask(asking, text)
		}
		cancel()
		if err == nil {
			return ErrBusy
		}
	}
	return ctx.Err()
}

// Open opens a run's queue, and answers its workers. The caller calls Close. If the job has a coordinator
// already, that is ErrBusy.
func Open(ctx context.Context, o Options) (*Coordinator, error) {
	if err := busy(ctx, &o); err != nil {
		return nil, err
	}
	dealer, err := o.Broker.Open(ctx, o.Job)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{
		o: o, dealer: dealer, announced: time.Now(), parted: make(chan struct{}, 1), deals: make(chan struct{}, maxDealing), own: make(chan struct{}, maxDeclined),
		filling: make(map[group]*batch), batches: make(map[uint64]*batch), workers: make(map[workerID]*worker), told: make(map[string]bool),
	}
	c.ctx, c.end = context.WithCancel(context.WithoutCancel(ctx))
	var talking context.Context
	talking, c.hush = context.WithCancel(context.WithoutCancel(ctx))
	c.talk.Go(func() { c.answer(talking, dealer) })
	c.work.Go(c.tend)
	return c, nil
}

// AtOnce implements Hands.
func (c *Coordinator) AtOnce() int { return maxOutstanding }

// Copy implements Hands. A copy of a file that has further names gets its Handle: they are made by it.
func (c *Coordinator) Copy(ctx context.Context, d *Dir, src transfer.Source, dst transfer.Target, o *transfer.Options) (transfer.Result, error) {
	file := wire.File{Name: []byte(dst.Name), Lists: dst.Listed != nil && dst.Listed()}
	at := group{wire.COPY, src.Dir, dst.Dir}
	if src.Name != dst.Name {
		return c.copyHere(ctx, src, dst, o)
	}
	out, err := c.have(ctx, at, d, file)
	switch {
	case err != nil:
		return transfer.Result{}, err
	case out.End == wire.DECLINED:
		c.declined(&out)
		return c.copyHere(ctx, src, dst, o)
	case out.End == wire.FAILED:
		return transfer.Result{}, out.Failed.Err()
	}
	res := out.Copied.Result()
	if o.Moved != nil {
		o.Moved(int64(res.Bytes))
	}
	const known = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime
	if src.Attr.Nlink > 1 || !src.Attr.Has(vfs.MaskNlink) || !res.Attr.Has(known) {
		res.Handle, res.Attr, err = find(ctx, dst.FS, dst.Dir, dst.Name)
		if err == nil && (res.Attr.Type != vfs.TypeReg || res.Attr.Size != res.Bytes) {
			err = fmt.Errorf("its name is that of another file by now: %w", transfer.ErrChanged)
		}
		if err != nil {
			return transfer.Result{}, fmt.Errorf("look at the copy: %w", err)
		}
	}
	return res, nil
}

// copyHere copies a file that no worker can copy.
func (c *Coordinator) copyHere(ctx context.Context, src transfer.Source, dst transfer.Target, o *transfer.Options) (res transfer.Result, err error) {
	if err := c.byItself(ctx); err != nil {
		return res, err
	}
	defer func() { <-c.own }()
	return Own{}.Copy(ctx, nil, src, dst, o)
}

// declined tells why no worker does a file, of the first. What no batch can have needs no explanation.
func (c *Coordinator) declined(out *wire.Outcome) {
	if len(out.Why) > 0 {
		c.tellOnce("declined", "a worker cannot do what is done here instead (further such files are not listed): %s", out.Why)
	}
}

// byItself waits for a place to work at a file without a worker. The caller takes an element from c.own.
func (c *Coordinator) byItself(ctx context.Context) error {
	select {
	case c.own <- struct{}{}:
		c.here.Add(1)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// find looks a name up, with all attributes.
func find(ctx context.Context, f vfs.FS, dir vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
	h, attr, _, err := f.Lookup(ctx, dir, name)
	if err == nil && !attr.Has(vfs.MaskV3) {
		attr, err = f.GetAttr(ctx, h, vfs.MaskV3)
	}
	return h, attr, err
}

// Compare implements Hands.
func (c *Coordinator) Compare(ctx context.Context, d *Dir, a, b transfer.Source, size uint64, o *transfer.Options) (transfer.Comparison, error) {
	out, err := c.have(ctx, group{wire.COMPARE, a.Dir, vfs.Handle{}}, d, wire.File{Name: []byte(a.Name), Size: size})
	switch {
	case err != nil:
		return transfer.Comparison{}, err
	case out.End == wire.FAILED:
		return transfer.Comparison{}, out.Failed.Err()
	case out.End == wire.COMPARED:
		cmp := out.Compared.Comparison()
		if o.Moved != nil {
			o.Moved(int64(cmp.Bytes))
		}
		return cmp, nil
	}
	c.declined(&out)
	if err := c.byItself(ctx); err != nil {
		return transfer.Comparison{}, err
	}
	defer func() { <-c.own }()
	return Own{}.Compare(ctx, d, a, b, size, o)
}

// Remove implements Hands.
func (c *Coordinator) Remove(ctx context.Context, d *Dir, f vfs.FS, dir vfs.Handle, name string) error {
	out, err := c.have(ctx, group{wire.REMOVE, vfs.Handle{}, dir}, d, wire.File{Name: []byte(name)})
	switch {
	case err != nil:
		return err
	case out.End == wire.FAILED:
		return out.Failed.Err()
	case out.End == wire.REMOVED:
		return nil
	}
	c.declined(&out)
	if err := c.byItself(ctx); err != nil {
		return err
	}
	defer func() { <-c.own }()
	return Own{}.Remove(ctx, d, f, dir, name)
}

// tellOnce tells the user something that may happen again and again, once.
func (c *Coordinator) tellOnce(kind, format string, args ...any) {
	c.mu.Lock()
	again := c.told[kind]
	c.told[kind] = true
	c.mu.Unlock()
	if !again {
		c.o.Tell(fmt.Sprintf(format, args...))
	}
}
