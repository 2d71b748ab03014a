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

// If a server begins to serve another directory under the name of the source, or the
// source is removed, nothing in it is found any more. That each item has vanished would
// be true, and the job would have lost most of the tree without an error.

// source is what a job reads, as it was found at first.
type source struct {
	at   Place
	attr vfs.Attr
}

// there is nil as long as the source is what it was at first.
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

// listed is where an object of the source was listed, and what had its name then. By links
// walk.Unlinked knows whether the file system counts them. The zero listed is nowhere.
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

// faultAt is where what the walk could not visit was listed.
func faultAt(d *walk.Dir, name string, err error) listed {
	if name == "" {
		return listedDir(d)
	}
	v, _ := errors.AsType[*walk.VanishedError](err)
	if v == nil {
		return listed{}
	}
	return listed{d.Handle, name, v.Handle, v.Links}
}

// unsure is an item that was gone when its turn came.
type unsure struct {
	event progress.Event // to be told if it is still gone; of no type: nothing is
	at    listed
}

// doubtful holds back what became of an item that is gone: perhaps the source is. Now and
// then the source is asked.
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

// mistrust has the source asked in the end: at this place another object had the name.
func (c *outcomes) mistrust(ctx context.Context, path string, at listed) {
	c.doubtful(ctx, unsure{progress.Event{Path: path}, at})
}

// mistrustReplaced is mistrust for d, if that took the place of what had been listed.
func (c *outcomes) mistrustReplaced(ctx context.Context, d *walk.Dir) {
	if was, ok := d.Replaced(); ok {
		c.mistrust(ctx, d.Path(""), listed{d.Parent.Handle, d.Name, was, d.Attr.Nlink})
	}
}

// makeSure asks the source once more when all is done, if anything calls for it. An error
// is that of ctx: nobody knows then whether the source was there.
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

// ask reports whether the source is still there, and ends the job if not.
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

// askAll tells what was held back if the source is still there; else it stays held back.
// What is back by now has failed: somebody took the source away for a while, or something
// in it.
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

// lookAgain looks whether u is back.
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

// gone reports whether d, of the source, is not there any more. That another directory
// has its name is an error: what is in that has not been met.
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
