package job

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// crew works at several objects of a job concurrently, and counts them.
type crew struct {
	outcomes
	slots  chan struct{} // holds one element for each object that is worked at
	flying sync.WaitGroup
	more   bool // another job follows with the same progress

	// seen are the directories that the walks so far have entered, and those of a later walk that
	// is under way. seeing is that of the walk at hand.
	seen        [2]seenDirs
	seeing      *seenDirs
	dirsChanged atomic.Uint64
}

// closeTotals notes that all items have been found.
func (c *crew) closeTotals() {
	if !c.more {
		c.progress.CloseTotals()
	}
}

// found counts an object to be worked at.
func (c *crew) found(a *vfs.Attr) {
	c.progress.Add(progress.FoundItems, 1)
	if a.Type == vfs.TypeReg {
		c.progress.Add(progress.FoundBytes, a.Size)
	}
}

// fault counts what the walk could not read: an entry of d that was not found before, or, with
// no name, the rest of d, which is counted when it is left.
func (c *crew) fault(ctx context.Context, d *walk.Dir, name string, err error) {
	if name == "" {
		c.progress.Add(progress.MoreErrors, 1)
	} else {
		c.progress.Add(progress.FoundItems, 1)
	}
	if v, ok := errors.AsType[*walk.VanishedError](err); ok {
		c.dirs.add(d.Path(name), v.Handle, &v.Attr)
	}
	c.failAt(ctx, d.Path(name), err, faultAt(d, name, err))
}

// begin is spawn for an object that has been found.
func (c *crew) begin(ctx context.Context, d *walk.Dir, e *vfs.Entry, work func(name string, own *vfs.Entry) error) error {
	c.found(&e.Attr)
	return c.spawn(ctx, d, e, work)
}

// spawn runs work in the background for an object of d. work gets the name and a copy of e
// without it. spawn waits for a free slot, and so holds up the listing. An error of work
// ends the walk.
func (c *crew) spawn(ctx context.Context, d *walk.Dir, e *vfs.Entry, work func(name string, own *vfs.Entry) error) error {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	own, name := *e, string(e.Name)
	own.Name = nil
	d.Hold()
	c.flying.Go(func() {
		defer func() { <-c.slots }()
		defer d.Release()
		if err := work(name, &own); err != nil {
			d.Abort(err)
		}
	})
	return nil
}

// tree calls visit, which walks the source, and waits for all work that was begun. Then it calls
// again, which looks for directories that have changed. If a streak of failures broke the job off,
// its error is returned.
func (c *crew) tree(ctx context.Context, visit func(context.Context, walk.Options) error, again func(context.Context) error) error {
	c.seeing = &c.seen[0]
	ctx, end := c.watch(ctx, func() int { return len(c.slots) })
	err := visit(ctx, walk.Options{Listed: c.closeTotals})
	c.flying.Wait()
	if err == nil {
		err = again(ctx)
	}
	if err == nil {
		err = c.findMoved(ctx)
	}
	return end(err)
}
