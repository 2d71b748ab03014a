package job

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/remove"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// survey counts what would be deleted, and calls each, unless that is nil, for each object.
func (j *copyJob) survey(ctx context.Context, each func(path string)) (n uint64, err error) {
	var count atomic.Uint64
	one := func(path string) {
		count.Add(1)
		if each != nil {
			each(path)
		}
	}
	v := &deletion{copyJob: j, dry: true, condemn: func(d *delta.Dir, e *vfs.Entry, below any) error {
		path := d.Path(string(e.Name))
		o, err := j.known(ctx, d.Data.(*deletedIn).handle, string(e.Name), e)
		if errors.Is(err, vfs.ErrNoEnt) {
			return nil
		}
		if err == nil && o.attr.Type == vfs.TypeDir {
			c := &counter{path: path, one: one, choice: j.choice(below), enter: j.spareSource}
			return walk.Tree(ctx, j.o.Dest.FS, o.handle, c.options(), c)
		}
		one(path)
		return err
	}}
	err = v.join(ctx)
	return count.Load(), err
}

// counter is the visitor that counts what is below a directory that would be deleted, and itself.
type counter struct {
	path   string
	one    func(path string)
	enter  func(ctx context.Context, path string, a *vfs.Attr) error // of each directory; an error ends the walk
	choice remove.Choice
}

// options are those of its walk: directories in which something is left out, or that are only gone through, stay.
func (c *counter) options() walk.Options {
	o := walk.Options{Parallel: 1}
	if c.choice.Choose != nil {
		o.Choose = func(in any, e *vfs.Entry) (any, bool) {
			if in == nil {
				in = c.choice.Chosen
			}
			return c.choice.Choose(in, e)
		}
		o.LeftOut = func(d *walk.Dir, _ *vfs.Entry) { keep(d) }
	}
	return o
}

// keep marks d and the directories above it as ones that stay.
func keep(d *walk.Dir) {
	for ; d != nil; d = d.Parent {
		d.Data = true
	}
}

func (c *counter) at(d *walk.Dir, name string) string {
	if d.Parent == nil && name == "" {
		return c.path
	}
	return c.path + "/" + d.Path(name)
}

// Enter marks what is only gone through.
func (c *counter) Enter(ctx context.Context, d *walk.Dir) error {
	if err := c.enter(ctx, c.at(d, ""), &d.Attr); err != nil {
		return err
	}
	chosen := d.Chosen
	if d.Parent == nil {
		chosen = c.choice.Chosen
	}
	if c.choice.Stays != nil && c.choice.Stays(chosen) {
		keep(d)
	}
	return nil
}

func (c *counter) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	c.one(c.at(d, string(e.Name)))
	return nil
}

// Fault passes over what cannot be listed: it could not be deleted, either.
func (c *counter) Fault(ctx context.Context, _ *walk.Dir, _ string, _ error) error { return ctx.Err() }

func (c *counter) Leave(_ context.Context, d *walk.Dir, _ error) error {
	if d.Data == nil {
		c.one(c.at(d, ""))
	}
	return nil
}
