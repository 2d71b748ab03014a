package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// If a server begins to serve another directory under the source's name, or the source is
// removed, every item vanishes. Notes alone would be true, but most of the tree would be
// missing without an error. So the job asks whether the source itself is still there.

// source is the root of what a job reads, with its attributes at the start.
type source struct {
	at   Place
	attr vfs.Attr
}

// there returns an error if the source is gone, replaced, or does not answer.
func (s *source) there(ctx context.Context) error {
	now, err := s.at.FS.GetAttr(ctx, s.at.Handle, vfs.MaskV3)
	switch {
	case errors.Is(err, vfs.ErrNoAnswer):
		return fmt.Errorf("%w: %w", ErrSilent, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrGone, err)
	case walk.Unlinked(s.attr.Nlink, &now):
		return fmt.Errorf("%w: its %v was removed", ErrGone, s.attr.Type)
	case another(&s.attr, &now):
		return fmt.Errorf("%w: another %v is in its place", ErrGone, now.Type)
	}
	return nil
}

// destStill returns an error if the copy does not have its name in the destination any more.
// Everything was written by handles, which stay with a directory that is moved.
func (j *copyJob) destStill(ctx context.Context) error {
	if j.o.Name == "" {
		return nil
	}
	now, ok, err := lookup(ctx, j.o.Dest.FS, j.o.Dest.Handle, j.o.Name)
	switch {
	case err == nil && !ok, errors.Is(err, vfs.ErrStale):
		return fmt.Errorf("%w: nothing has its name now", ErrMoved)
	case err != nil:
		return fmt.Errorf("look the copy up in the end: %w", err)
	case now.handle != j.target && another(&j.root, &now.attr):
		return fmt.Errorf("%w: its name is that of another %v now", ErrMoved, now.attr.Type)
	}
	return nil
}

// SameObject reports whether two sets of attributes may belong to one object: their ids do
// not differ.
func SameObject(a, b *vfs.Attr) bool { return !another(a, b) }

// listed is where an object of the source was listed, and the object's handle then. links
// tells walk.Unlinked whether the file system counts links. The zero listed is unknown.
type listed struct {
	dir    vfs.Handle
	name   string
	handle vfs.Handle
	links  uint32
}

// listedDir is where d was listed.
func listedDir(d *walk.Dir) listed {
	if d.Parent == nil {
		return listed{}
	}
	return listed{d.Parent.Handle, d.Name, d.Handle, d.Attr.Nlink}
}

// faultAt is where an item that the walk could not visit was listed.
func faultAt(d *walk.Dir, name string, err error) listed {
	if name == "" {
		return listedDir(d)
	}
	v, _ := errors.AsType[*walk.VanishedError](err)
	if v == nil {
		return listed{}
	}
	return listed{d.Handle, name, v.Handle, v.Attr.Nlink}
}

// unsure is an item that was gone when its turn came.
type unsure struct {
	event progress.Event // reported if the item is still gone; an empty type: no report
	at    listed
}

// doubtful holds back the report of an item that is gone, because the source may be gone.
// After every maxUnsure items it asks whether the source is.
func (c *outcomes) doubtful(ctx context.Context, u unsure) {
	c.mu.Lock()
	c.unsure, c.doubt = append(c.unsure, u), true
	n := len(c.unsure)
	c.mu.Unlock()
	switch {
	case n >= maxUnsureHeld:
		c.askAll(ctx)
	case n%maxUnsure == 0:
		c.ask(ctx)
	}
}

// mistrust notes that another object had an item's name. The source is asked in the end.
func (c *outcomes) mistrust(ctx context.Context, path string, at listed) {
	c.doubtful(ctx, unsure{progress.Event{Path: path}, at})
}

// mistrustReplaced calls mistrust for d, if d took the place of the directory listed.
func (c *outcomes) mistrustReplaced(ctx context.Context, d *walk.Dir) {
	if was, ok := d.Replaced(); ok {
		c.mistrust(ctx, d.Path(""), listed{d.Parent.Handle, d.Name, was, d.Attr.Nlink})
	}
}

// makeSure asks the source once more at the end of the job, if there was any doubt. It
// returns the error of ctx, if that ended before the source could answer.
func (c *outcomes) makeSure(ctx context.Context) error {
	c.mu.Lock()
	doubt := c.doubt
	c.mu.Unlock()
	if !doubt {
		return nil
	}
	c.askAll(ctx)
	return ctx.Err()
}

// ask reports whether the source is still there. If not, it ends the job.
func (c *outcomes) ask(ctx context.Context) bool {
	err := c.source.there(ctx)
	if err == nil || ctx.Err() != nil {
		return err == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.breakOff != nil {
		c.breakOff(err)
	}
	return false
}

// askAll reports what was held back, if the source is still there. Otherwise it stays held
// back, and the job ends. An item that is back by now has failed: somebody took the source,
// or a part of it, away for a while.
func (c *outcomes) askAll(ctx context.Context) {
	if !c.ask(ctx) {
		return
	}
	held := take(c, &c.unsure)
	var wg sync.WaitGroup
	for some := range slices.Chunk(held, maxUnsure) {
		for i := range some {
			wg.Go(func() { c.lookAgain(ctx, &some[i]) })
		}
		wg.Wait()
	}
	c.tellAll(held)
}

// lookAgain makes u an error if the object is back under its name.
func (c *outcomes) lookAgain(ctx context.Context, u *unsure) {
	if u.at.handle.IsZero() {
		return
	}
	h, now, _, err := c.source.at.FS.Lookup(ctx, u.at.dir, u.at.name)
	if err != nil || h != u.at.handle || walk.Unlinked(u.at.links, &now) {
		return
	}
	const away = "when its turn came, and it is back: somebody took it away meanwhile, or the source"
	u.event.Kind = ""
	if u.event.Type == "" {
		u.event.Message = "another object had its name " + away
		c.progress.Add(progress.MoreErrors, 1) // the other object is counted
	} else {
		u.event.Message = "it was not there " + away
	}
	u.event.Type = "error"
}

func (c *outcomes) tellAll(held []unsure) {
	for _, u := range held {
		if u.event.Type != "" {
			c.report(u.event)
		}
	}
}

// gone reports whether d, of the source, is not there any more. If another directory has
// its name, that is errReplaced: the other's contents have not been copied.
func (c *outcomes) gone(ctx context.Context, d *walk.Dir) (bool, error) {
	now, ok, err := lookup(ctx, c.source.at.FS, d.Parent.Handle, d.Name)
	switch {
	case errors.Is(err, vfs.ErrStale), errors.Is(err, vfs.ErrNotDir):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look the directory up again: %w", err)
	case !ok, walk.Unlinked(d.Attr.Nlink, &now.attr):
		return true, nil
	case now.handle == d.Handle || !another(&d.Attr, &now.attr):
		return false, nil
	}
	return false, fmt.Errorf("%w: its name is that of another %v now", errReplaced, now.attr.Type)
}
