package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/progress"
	"github.com/nfsbox/nfsbox/internal/walk"
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
	case now.Has(vfs.MaskNlink) && now.Nlink == 0:
		return fmt.Errorf("%w: its %v was removed", ErrGone, s.attr.Type)
	case another(&s.attr, &now):
		return fmt.Errorf("%w: another %v is in its place", ErrGone, now.Type)
	}
	return nil
}

// doubtful holds back what became of an item that is gone: perhaps the source is. At the
// bound the source is asked.
func (c *outcomes) doubtful(ctx context.Context, e progress.Event) {
	c.mu.Lock()
	c.unsure, c.doubt = append(c.unsure, e), true
	full := len(c.unsure) >= maxUnsure
	c.mu.Unlock()
	if full {
		c.ask(ctx)
	}
}

// mistrust has the source asked in the end: something in it was another object than it
// had been.
func (c *outcomes) mistrust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubt = true
}

// makeSure asks the source once more when all is done, if anything calls for it.
func (c *outcomes) makeSure(ctx context.Context) {
	c.mu.Lock()
	doubt := c.doubt
	c.mu.Unlock()
	if doubt {
		c.ask(ctx)
	}
}

// ask tells what was held back if the source is still there, and ends the job if not.
func (c *outcomes) ask(ctx context.Context) {
	held := c.take(&c.unsure)
	if err := c.source.there(ctx); err != nil && ctx.Err() == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.breakOff != nil {
			c.breakOff(err)
		}
		return
	}
	c.reportAll(held)
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
	case !ok:
		return true, nil
	case now.handle == d.Handle || !another(&d.Attr, &now.attr):
		return false, nil
	}
	return false, fmt.Errorf("%w: its name is that of another %v now", errReplaced, now.attr.Type)
}
