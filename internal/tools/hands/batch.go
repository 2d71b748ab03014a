package hands

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/wait"
	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/vfs"
)

// errEnded says that a file's job has ended.
var errEnded = errors.New("the job has ended")

// group is what the files of a batch have in common.
type group struct {
	work     wire.Work
	src, dst vfs.Handle // directories
}

// task is a file that a caller waits for. Coordinator.mu guards it.
type task struct {
	of   *batch
	file wire.File
	done chan wire.Outcome // takes one
	over bool              // it is done, or nobody waits for it any more
}

// batch are files that a worker gets at once. Coordinator.mu guards it, but for item and digest: these
// are set before it is dealt, and stay.
type batch struct {
	id     uint64
	at     group
	wire   wire.Batch // but for the files
	tasks  []*task
	left   int         // tasks that are not over
	timer  *time.Timer // sends it
	item   []byte
	digest [sha256.Size]byte

	dealing  bool // it is on its way to the broker
	dealt    time.Time
	unqueued bool     // the broker has leased it in vain since, so that it has it no more
	holder   workerID // who works at it; none: nobody, as far as is known
	attempt  uint32
	once     uint64    // of the claim by which it has it
	vain     int       // attempts in a row that have finished no file
	touched  time.Time // when its holder was heard of
	excused  bool      // touched is later, as nobody was heard of
}

// held reports whether a worker has the batch.
func (b *batch) held() bool { return b.holder != workerID{} }

// have has a worker do what at says to a file of d. The outcome is DECLINED where no worker can.
func (c *Coordinator) have(ctx context.Context, at group, d *Dir, file wire.File) (wire.Outcome, error) {
	t := c.add(at, d, file)
	if t == nil {
		return wire.Outcome{End: wire.DECLINED}, nil
	}
	select {
	case out := <-t.done:
		return out, nil
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.workers[t.of.holder]; w != nil && !t.over {
		w.owes = true
	}
	c.finish(t)
	if err := ctx.Err(); err != nil {
		return wire.Outcome{}, err
	}
	return wire.Outcome{}, errEnded
}

// add adds a file to the batch of its directory. It returns nil if no batch can have it.
func (c *Coordinator) add(at group, d *Dir, file wire.File) *task {
	if d == nil || len(file.Name) > wire.NAME {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil
	}
	b := c.filling[at]
	if b == nil {
		if b = c.begin(at, d); b == nil {
			return nil
		}
	}
	t := &task{of: b, file: file, done: make(chan wire.Outcome, 1)}
	b.tasks = append(b.tasks, t)
	b.left++
	switch {
	case len(b.tasks) == wire.FILES:
		c.seal(b)
	case c.dealt >= plenty:
		b.timer.Reset(patient)
	default:
		b.timer.Reset(linger)
	}
	return t
}

// begin begins a batch. It returns nil if the directory's path is too long for one.
func (c *Coordinator) begin(at group, d *Dir) *batch {
	path := d.Path()
	b := &batch{at: at, wire: wire.Batch{Speaks: wire.VERSION, Work: at.work}}
	n := 0
	for _, name := range path {
		n += len(name) + 1
		b.wire.Path = append(b.wire.Path, []byte(name))
	}
	if len(path) > wire.DEPTH || n > vfs.MaxPath {
		return nil
	}
	b.wire.Source.SetIdentity(d.Source)
	b.wire.Destination.SetIdentity(d.Dest)
	b.timer = time.AfterFunc(linger, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.filling[at] == b {
			c.seal(b)
		}
	})
	c.filling[at] = b
	return b
}

// seal ends the filling of a batch, and deals it.
func (c *Coordinator) seal(b *batch) {
	b.timer.Stop()
	delete(c.filling, b.at)
	if b.left == 0 || c.ctx.Err() != nil {
		return
	}
	c.lastID++
	b.id = c.lastID
	c.dealt += b.left
	c.batches[b.id] = b
	whole := b.wire
	for _, t := range b.tasks {
		whole.Files = append(whole.Files, t.file)
	}
	var err error
	if b.item, err = whole.AppendXDR(nil); err != nil || len(b.item) > queue.MaxItem {
		c.endAll(b, wire.Declined("it does not fit a batch")) // add has seen to it that it does
		return
	}
	b.digest = sha256.Sum256(b.item)
	c.deal(b)
}

// finish ends a task, and forgets its batch with the last one.
func (c *Coordinator) finish(t *task) {
	if t.over {
		return
	}
	t.over = true
	if t.of.id != 0 {
		c.dealt--
	}
	if t.of.left--; t.of.left == 0 {
		delete(c.batches, t.of.id)
	}
}

// endAll ends all tasks of a batch that are not over with one outcome.
func (c *Coordinator) endAll(b *batch, out wire.Outcome) {
	for _, t := range b.tasks {
		if !t.over {
			c.finish(t)
			t.done <- out
		}
	}
}

// giveUp ends a batch that workers have begun with again and again.
func (c *Coordinator) giveUp(b *batch) {
	c.endAll(b, wire.OfError(ErrGivenUp))
}

// deal gives a batch to the broker, in the background. c.mu is held.
func (c *Coordinator) deal(b *batch) {
	if b.dealing || c.ctx.Err() != nil {
		return
	}
	b.dealing = true
	c.work.Go(func() {
		select {
		case c.deals <- struct{}{}:
		case <-c.ctx.Done():
			return
		}
		defer func() { <-c.deals }()
		for c.dealOnce(b) {
			if wait.For(c.ctx, dealAgain) != nil {
				return
			}
		}
	})
}

// dealOnce tries to give a batch to the broker. It reports whether to try again later.
func (c *Coordinator) dealOnce(b *batch) (again bool) {
	for {
		c.mu.Lock()
		dealer, over := c.dealer, b.left == 0
		c.mu.Unlock()
		if over {
			return false
		}
		err := dealer.Deal(c.ctx, queue.Item{ID: b.id, Body: b.item})
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			b.dealing, b.unqueued, b.dealt = false, false, time.Now()
			return false
		}
		if errors.Is(err, queue.ErrLost) {
			if err = c.reopen(dealer); err == nil {
				continue
			}
		}
		if c.ctx.Err() != nil {
			return false
		}
		c.tellOnce("deal", "the broker does not take batches, and is asked again and again: %v", err)
		return true
	}
}

// reopen opens the queue anew, which the broker has lost, and deals again what nobody works at.
func (c *Coordinator) reopen(lost queue.Dealer) error {
	c.opened.Lock()
	defer c.opened.Unlock()
	c.mu.Lock()
	done := c.dealer != lost
	c.mu.Unlock()
	if done {
		return nil
	}
	dealer, err := c.o.Broker.Open(c.ctx, c.o.Job)
	if err != nil {
		return err
	}
	c.o.Tell("the broker has lost the job's batches: those that nobody works at are dealt again")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dealer = dealer
	for _, b := range c.batches {
		if !b.held() {
			c.deal(b)
		}
	}
	return nil
}

// announce puts the job's description back, in the background, as somebody may have put another one in its place. If
// the broker has lost the queue, that shows it. c.mu is held.
func (c *Coordinator) announce() {
	if c.announcing || c.ctx.Err() != nil {
		return
	}
	c.announcing, c.refused = true, false
	dealer := c.dealer
	c.work.Go(func() {
		err := dealer.Announce(c.ctx)
		if errors.Is(err, queue.ErrLost) {
			err = c.reopen(dealer)
		}
		if err != nil && c.ctx.Err() == nil {
			c.tellOnce("announce", "the broker does not take the job's description: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.announcing, c.announced = false, time.Now()
	})
}
