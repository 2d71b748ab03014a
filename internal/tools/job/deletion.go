package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/remove"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// deletion is the visitor that finds what is to be deleted.
type deletion struct {
	*copyJob
	dry     bool // nothing is changed
	condemn func(d *delta.Dir, e *vfs.Entry, below any) error
}

// deletedIn is a directory of the destination in which something may be deleted.
type deletedIn struct {
	handle vfs.Handle
	attr   vfs.Attr

	some    atomic.Bool // the source's directory is not empty
	opening sync.Once
	touched atomic.Bool
	opened  atomic.Bool
}

// within is the id of the directory's file system, which is not left.
func (s *deletedIn) within() *[2]uint64 {
	if !s.attr.Has(vfs.MaskFSID) {
		return nil
	}
	return &s.attr.FSID
}

// open lets us change a directory whose mode forbids it. If we may not, what is deleted in it fails.
func (s *deletedIn) open(ctx context.Context, f vfs.FS) {
	s.touched.Store(true)
	s.opening.Do(func() {
		if !s.attr.Has(vfs.MaskMode) || s.attr.Mode&ownerMayAll == ownerMayAll {
			return
		}
		set := vfs.SetAttr{Valid: vfs.MaskMode, Mode: s.attr.Mode | ownerMayAll}
		_, err := f.SetAttr(ctx, s.handle, &set, nil)
		s.opened.Store(err == nil)
	})
}

// join walks those directories that may have something to delete.
func (v *deletion) join(ctx context.Context) error {
	return delta.Tree(ctx, v.o.Source.FS, v.o.Source.Handle, v.o.Dest.FS, delta.Options{Walk: v.choosing(walk.Options{}), Descend: v.descend}, v)
}

func (v *deletion) descend(child *delta.Dir) bool {
	child.Parent.Data.(*deletedIn).some.Store(true)
	s := v.seen[0].find(child.Dir)
	return s == nil || s.condemned
}

// Enter finds the directory in the destination.
func (v *deletion) Enter(ctx context.Context, d *delta.Dir, there *vfs.Entry) (vfs.Handle, error) {
	s := &deletedIn{handle: v.target}
	var err error
	switch {
	case d.Parent == nil:
		s.attr, err = v.o.Dest.FS.GetAttr(ctx, v.target, vfs.MaskV3)
	case there == nil:
		return s.handle, walk.ErrSkipDir // it was made meanwhile
	default:
		var o object
		o, err = v.known(ctx, d.Parent.Data.(*deletedIn).handle, d.Name, there)
		s.handle, s.attr = o.handle, o.attr
	}
	switch {
	case err != nil:
		v.failMore(ctx, d.Path(""), fmt.Errorf("look at the destination: %w", err))
		if ctx.Err() != nil {
			return s.handle, ctx.Err()
		}
		return s.handle, walk.ErrSkipDir
	case s.attr.Type != vfs.TypeDir:
		return s.handle, v.instead(ctx, d.Parent, there)
	}
	d.Data = s
	return s.handle, nil
}

// instead deletes what has the name of a directory of the source.
func (v *deletion) instead(ctx context.Context, up *delta.Dir, there *vfs.Entry) error {
	if err := v.unwanted(ctx, up, there); err != nil {
		return err
	}
	return walk.ErrSkipDir
}

// Entry deletes a directory that has the name of something else.
func (v *deletion) Entry(ctx context.Context, d *delta.Dir, _, there *vfs.Entry) error {
	d.Data.(*deletedIn).some.Store(true)
	if there == nil || there.Attr.Type != vfs.TypeDir {
		return nil
	}
	return v.unwanted(ctx, d, there)
}

// Extra deletes what the source does not have.
func (v *deletion) Extra(ctx context.Context, d *delta.Dir, e *vfs.Entry) error {
	if v.o.OneFileSystem && !d.Data.(*deletedIn).some.Load() {
		return nil // something may be mounted there
	}
	return v.unless(ctx, d, e, func(below any) error {
		if !v.extras.has(d.Path(string(e.Name))) {
			v.extras.late()
			return nil
		}
		return v.condemn(d, e, below)
	})
}

// unwanted deletes what the destination has, unless the job's filter leaves it out.
func (v *deletion) unwanted(ctx context.Context, d *delta.Dir, e *vfs.Entry) error {
	return v.unless(ctx, d, e, func(below any) error { return v.condemn(d, e, below) })
}

// unless calls end for what the destination has, unless the job's filter leaves it out.
func (v *deletion) unless(ctx context.Context, d *delta.Dir, e *vfs.Entry, end func(below any) error) error {
	below, wanted, err := v.wanted(ctx, d.Dir, Place{FS: v.o.Dest.FS, Handle: d.Data.(*deletedIn).handle}, e)
	switch {
	case errors.Is(err, vfs.ErrNoEnt):
		return ctx.Err()
	case err != nil:
		v.failMore(ctx, d.Path(string(e.Name)), err)
		return ctx.Err()
	case !wanted:
		return nil
	}
	return end(below)
}

// choice is what is deleted of a directory, of which the filter knows below. What it leaves out stays.
func (j *copyJob) choice(below any) remove.Choice {
	if j.filter == nil {
		return remove.Choice{}
	}
	return remove.Choice{Choose: j.filter.Would, Chosen: below, Stays: j.filter.Through}
}

// Fault ends the deletion, unless something has vanished.
func (v *deletion) Fault(ctx context.Context, d *delta.Dir, name string, err error) error {
	if ctx.Err() != nil || errors.Is(err, walk.ErrVanished) {
		return ctx.Err()
	}
	return fmt.Errorf("%s: %w: %w", d.Path(name), errNotShown, err)
}

// FaultRight reports what could not be read of the destination's directory.
func (v *deletion) FaultRight(ctx context.Context, d *delta.Dir, name string, err error) error {
	v.failMore(ctx, d.Path(name), fmt.Errorf("list the destination: %w", err))
	return ctx.Err()
}

// Leave gives a directory in which something was deleted its time again, and its mode.
func (v *deletion) Leave(ctx context.Context, d *delta.Dir, _ error) error {
	s := d.Data.(*deletedIn)
	defer forget(v.o.Dest.FS, s.handle)
	if v.dry || !s.touched.Load() {
		return ctx.Err()
	}
	set := vfs.SetAttr{Valid: d.Attr.Valid & vfs.MaskMtime, Mtime: d.Attr.Mtime}
	if s.opened.Load() {
		set.Valid, set.Mode = set.Valid|vfs.MaskMode, s.attr.Mode
	}
	if _, err := v.o.Dest.FS.SetAttr(ctx, s.handle, &set, nil); err != nil {
		v.failMore(ctx, d.Path(""), fmt.Errorf("give the directory its time again: %w", err))
	} else if v.syncer != nil {
		if err := v.syncer.Sync(ctx, s.handle); err != nil && !cannotMake(err) {
			v.failMore(ctx, d.Path(""), fmt.Errorf("sync the directory: %w", err))
		}
	}
	return ctx.Err()
}
