package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/base/filter"
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
	filter *filter.Filter
	oneFS  bool // directories of other file systems than the source's root count as empty

	elsewhere atomic.Uint64 // such directories

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

// firstWalk are the options of the walk in which all is met, and what is left out is counted.
func (c *crew) firstWalk() walk.Options {
	return c.choosing(walk.Options{Listed: c.closeTotals, Elsewhere: func(*walk.Dir) { c.elsewhere.Add(1) }, LeftOut: func(_ *walk.Dir, e *vfs.Entry) { c.filter.LeftOut(e) }})
}

// choosing is o for a walk of the source, of which no more is met than the job's filter chooses.
func (c *crew) choosing(o walk.Options) walk.Options {
	o.OneFileSystem = c.oneFS
	if c.filter != nil {
		o.Choose = c.filter.Choose
	}
	return o
}

// wanted reports whether a name that only the destination has, in at, would be chosen if the source had it in d. below is
// then what the filter knows of it.
func (c *crew) wanted(ctx context.Context, d *walk.Dir, at Place, e *vfs.Entry) (below any, ok bool, err error) {
	if c.filter == nil {
		return nil, true, nil
	}
	own := *e
	if needed := vfs.MaskType | vfs.MaskSize | vfs.MaskMtime; !own.Attr.Has(needed) {
		if own.Handle, own.Attr, _, err = at.FS.Lookup(ctx, at.Handle, string(e.Name)); err == nil && !own.Attr.Has(needed) {
			own.Attr, err = at.FS.GetAttr(ctx, own.Handle, vfs.MaskV3)
		}
		if err != nil {
			return nil, false, fmt.Errorf("look at what the destination has: %w", err)
		}
	}
	below, ok = c.filter.Would(d.Chosen, &own)
	return below, ok, nil
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
	err := visit(ctx, c.firstWalk())
	c.flying.Wait()
	if err == nil {
		err = again(ctx)
	}
	if err == nil {
		err = c.findMoved(ctx)
	}
	return end(err)
}
