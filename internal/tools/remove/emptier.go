package remove

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// emptier is the visitor that removes what it meets.
type emptier struct {
	*Remover
	target *Target
	again  *again // nil: it walks what was named
}

// again is a directory that is walked once more, because it was not empty.
type again struct {
	dir  *emptied
	path string
	pass int

	chosen any
}

// emptied is a directory that is being removed.
type emptied struct {
	kept   atomic.Bool // something in it stays, which was told
	opened atomic.Bool // its mode was changed
}

// options are those of a walk through a directory, for which Choose has returned chosen.
func (v *emptier) options(chosen any) (o walk.Options) {
	c := &v.target.Choice
	if c.Choose == nil {
		return o
	}
	o.Choose = func(in any, e *vfs.Entry) (any, bool) {
		if in == nil {
			in = chosen // e is in the root of the walk, or Choose returns nothing for directories
		}
		return c.Choose(in, e)
	}
	o.LeftOut = func(d *walk.Dir, e *vfs.Entry) {
		d.Data.(*emptied).kept.Store(true)
		if c.LeftOut != nil {
			c.LeftOut(e)
		}
	}
	return o
}

// stays reports whether a directory stays though all that was chosen in it is gone.
func (v *emptier) stays(d *walk.Dir) bool {
	t := v.target
	return d.Parent == nil && t.Inside || t.Stays != nil && t.Stays(v.chosen(d))
}

// chosen is what Choose has returned for a directory of the walk.
func (v *emptier) chosen(d *walk.Dir) any {
	switch {
	case d.Parent != nil:
		return d.Chosen
	case v.again != nil:
		return v.again.chosen
	}
	return v.target.Chosen
}

// path is the path of name in d, or of d itself.
func (v *emptier) path(d *walk.Dir, name string) string {
	root := v.target.Path
	if v.again != nil {
		root = v.again.path
	}
	if d.Parent == nil && name == "" {
		return root
	}
	return path.Join(root, d.Path(name))
}

// Enter refuses a directory that is not the one that was listed, or of another file system.
func (v *emptier) Enter(_ context.Context, d *walk.Dir) error {
	var err error
	if v.o.Enter != nil {
		if err := v.o.Enter(v.path(d, ""), &d.Attr); err != nil {
			return v.end(err)
		}
	}
	if _, other := d.Replaced(); other {
		err = ErrReplaced
	} else if w := v.target.Within; w != nil && d.Attr.FSID != *w {
		err = ErrOtherFS
	}
	if err == nil {
		if d.Data = new(emptied); d.Parent == nil && v.again != nil {
			d.Data = v.again.dir
		}
		v.open(d)
		return nil
	}
	if err := v.failed(v.path(d, ""), err); err != nil {
		return err
	}
	if d.Parent != nil {
		d.Parent.Data.(*emptied).kept.Store(true)
	}
	return walk.ErrSkipDir
}

// ownerMayAll are the rights that a directory's owner needs to empty it.
const ownerMayAll = 0o700

// open gives the owner of a directory the rights to empty it, if that was asked for. Where that fails,
// removing what is in it does, and is told.
func (v *emptier) open(d *walk.Dir) {
	if !v.o.Open || !d.Attr.Has(vfs.MaskMode) || d.Attr.Mode&ownerMayAll == ownerMayAll {
		return
	}
	set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: d.Attr.Mode&0o7777 | ownerMayAll}
	_, err := v.fs.SetAttr(v.ctx, d.Handle, &set, nil)
	d.Data.(*emptied).opened.Store(err == nil)
}

// shut gives a directory that stays the mode that it had, also if the work has ended.
func (v *emptier) shut(d *walk.Dir, at string) error {
	if !d.Data.(*emptied).opened.Load() {
		return nil
	}
	set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: d.Attr.Mode & 0o7777}
	if _, err := v.fs.SetAttr(context.WithoutCancel(v.ctx), d.Handle, &set, nil); err != nil && !errors.Is(err, vfs.ErrStale) {
		return v.failed(at, fmt.Errorf("give the directory its mode again: %w", err))
	}
	return nil
}

// Entry removes an object in the background. In a directory that is walked again it does not:
// that walk has a slot already, and would wait for another.
func (v *emptier) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	name, t := string(e.Name), e.Attr.Type
	if v.again != nil {
		return v.entry(d, name, t)
	}
	d.Hold()
	err := v.begin(v.slots, func() error {
		defer d.Release()
		return v.entry(d, name, t)
	})
	if err != nil {
		d.Release()
	}
	return err
}

func (v *emptier) entry(d *walk.Dir, name string, t vfs.Type) error {
	unlink := v.unlink(d.Handle, name)
	if v.o.Unlink != nil && v.again == nil {
		unlink = func() error { return v.o.Unlink(v.ctx, d, name) }
	}
	gone, err := v.name(unlink, v.path(d, name), t)
	if !gone {
		d.Data.(*emptied).kept.Store(true)
	}
	return err
}

// Fault reports what the walk could not read. What has vanished is gone.
func (v *emptier) Fault(ctx context.Context, d *walk.Dir, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, walk.ErrVanished) {
		return nil
	}
	d.Data.(*emptied).kept.Store(true)
	if errors.Is(err, walk.ErrName) {
		name = "" // a path with it could be that of something else
	}
	return v.failed(v.path(d, name), err)
}

// Leave removes a directory, unless something in it stays.
func (v *emptier) Leave(_ context.Context, d *walk.Dir, _ error) error {
	if d.Parent == nil && v.again != nil {
		return nil // rmdir removes it, which has it walked again
	}
	if v.stays(d) {
		d.Data.(*emptied).kept.Store(true)
	}
	at := v.path(d, "")
	gone, err := v.leave(d, at)
	if gone {
		return err
	}
	if d.Parent != nil {
		d.Parent.Data.(*emptied).kept.Store(true)
	}
	if serr := v.shut(d, at); err == nil {
		err = serr
	}
	return err
}

// leave removes a directory in which all is gone. It reports whether it did.
func (v *emptier) leave(d *walk.Dir, at string) (gone bool, err error) {
	if d.Data.(*emptied).kept.Load() {
		return false, nil
	}
	if ok, err := v.o.Ask(at, vfs.TypeDir); !ok || err != nil {
		return false, v.end(err)
	}
	dir, name := v.target.Dir, v.target.Name
	if d.Parent != nil {
		dir, name = d.Parent.Handle, d.Name
	}
	switch err = v.rmdir(d, dir, name, at); {
	case err == nil:
		v.o.Removed(at, vfs.TypeDir)
	case errors.Is(err, errKept):
		return false, nil
	case !errors.Is(err, vfs.ErrNoEnt):
		return false, v.failed(at, err)
	}
	return true, nil
}

// errKept says that something in a directory stays, which was told.
var errKept = errors.New("something in it stays")

// rmdir removes an empty directory. One that is not empty by now is emptied again.
func (v *emptier) rmdir(d *walk.Dir, dir vfs.Handle, name, at string) error {
	pass := 1
	if v.again != nil {
		pass = v.again.pass
	}
	for {
		_, err := v.fs.Remove(v.ctx, dir, name, true)
		if !errors.Is(err, vfs.ErrNotEmpty) && !errors.Is(err, vfs.ErrExist) {
			return err
		}
		if pass++; pass > maxPasses {
			return fmt.Errorf("%w: %w", ErrFilled, err)
		}
		s := d.Data.(*emptied)
		more := emptier{Remover: v.Remover, target: v.target, again: &again{s, at, pass, v.chosen(d)}}
		o := more.options(v.chosen(d))
		o.Parallel = 1
		if err := walk.Tree(v.ctx, v.fs, d.Handle, o, &more); err != nil {
			return err
		}
		if s.kept.Load() {
			return errKept
		}
	}
}
