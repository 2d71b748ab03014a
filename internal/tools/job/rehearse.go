package job

import (
	"context"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// A copy with CopyOptions.DryRun is rehearsed: both trees are listed, and compared as by a sync if it is one, and no
// call is made that changes anything. What cannot be known without one is left out: whether names are
// folded, and which attributes are refused. Names that would be linked to one object count as
// copies. A copy that is no sync makes each object anew: directories that are there already count, and
// are not told of.

// eventWould is the type of events that say what a copy would do.
const eventWould = "would"

// Kinds of those events.
const (
	wouldCopy   = "copy"   // it is not there, or another
	wouldSet    = "set"    // it is there, with other attributes
	wouldDelete = "delete" // the source does not have it
)

// rehearsal is the visitor of a copy that changes nothing.
type rehearsal struct {
	*copyJob
	pairs linkPairs
}

// dry reports whether nothing may be changed.
func (j *copyJob) dry() bool { return j.o.DryRun }

// would tells of something that would be done.
func (j *copyJob) would(kind, path string) {
	j.progress.Report(progress.Event{Type: eventWould, Kind: kind, Path: path})
}

// rehearseOne says whether an object that is no directory would be copied.
func (j *copyJob) rehearseOne(ctx context.Context) error {
	j.found(&j.srcAttr)
	j.closeTotals()
	watched, end := j.watch(ctx, func() int { return 1 })
	there, ok, err := lookup(watched, j.o.Dest.FS, j.o.Dest.Handle, j.o.Name)
	v := &rehearsal{copyJob: j}
	switch {
	case err != nil:
	case ok && j.o.Sync != nil:
		src := transfer.Source{FS: j.o.Source.FS, Handle: j.o.Source.Handle, Attr: j.srcAttr}
		err = v.judge(watched, j.o.Name, &src, &there)
	case ok && there.attr.Type == vfs.TypeDir:
		err = errDirInTheWay
	default:
		v.copyOf(j.o.Name, &j.srcAttr)
	}
	j.fail(watched, j.o.Name, err)
	return end(ctx.Err())
}

// rehearse says what a copy of a tree would do.
func (j *copyJob) rehearse(ctx context.Context) error {
	if j.target = j.o.Dest.Handle; j.o.Name != "" {
		there, ok, err := lookup(ctx, j.o.Dest.FS, j.o.Dest.Handle, j.o.Name)
		if err != nil {
			return fmt.Errorf("look at the destination: %w", err)
		}
		if j.target = there.handle; ok && there.attr.Type != vfs.TypeDir {
			return fmt.Errorf("the destination is no directory: %w", vfs.ErrInval)
		}
	}
	watched, end := j.watch(ctx, func() int { return len(j.slots) })
	o := delta.Options{Walk: j.firstWalk(), NoExtras: !j.deletes()}
	err := delta.Tree(watched, j.o.Source.FS, j.o.Source.Handle, j.o.Dest.FS, o, &rehearsal{copyJob: j})
	j.flying.Wait()
	if err = end(err); err != nil {
		return err
	}
	return j.deleteExtras(ctx)
}

// Enter compares a directory with that of the destination. d.Data is the latter's handle; zero: it would
// be made.
func (v *rehearsal) Enter(ctx context.Context, d *delta.Dir, there *vfs.Entry) (right vfs.Handle, err error) {
	v.found(&d.Attr)
	d.Data = vfs.Handle{}
	switch {
	case d.Parent == nil && !v.target.IsZero():
		var a vfs.Attr
		if a, err = v.o.Dest.FS.GetAttr(ctx, v.target, vfs.MaskV3); err != nil {
			return right, err
		}
		there = &vfs.Entry{Handle: v.target, Attr: a}
	case there == nil:
		v.copyOf(d.Path(""), &d.Attr)
		return right, nil
	}
	o := object{handle: there.Handle, attr: there.Attr}
	if d.Parent != nil {
		o, err = v.known(ctx, d.Parent.Data.(vfs.Handle), d.Name, there)
	}
	switch {
	case err == nil && o.attr.Type == vfs.TypeDir:
		d.Data = o.handle
		if v.o.Sync == nil {
			v.progress.Add(progress.Dirs, 1)
			break
		}
		if v.keepsAll() {
			v.needsNothing(&d.Attr)
			break
		}
		src := transfer.Source{FS: v.o.Source.FS, Handle: d.Handle, Attr: d.Attr}
		err = v.compared(ctx, d.Path(""), &src, &o, v.times.same(d.Attr.Mtime, o.attr.Mtime))
	case err == nil && v.deletes():
		v.toDelete.Add(1)
		v.copyOf(d.Path(""), &d.Attr)
	case err == nil:
		err = inTheDirsWay(o.attr.Type)
	}
	if err != nil {
		v.fail(ctx, d.Path(""), err)
		if ctx.Err() != nil {
			return right, ctx.Err()
		}
		return right, walk.ErrSkipDir
	}
	return d.Data.(vfs.Handle), nil
}

// Entry compares an object with what the destination has, in the background.
func (v *rehearsal) Entry(ctx context.Context, d *delta.Dir, e, there *vfs.Entry) error {
	return v.begin(ctx, d.Dir, e, func(name string, own *vfs.Entry) error {
		v.start()
		src := transfer.Source{FS: v.o.Source.FS, Handle: own.Handle, Attr: own.Attr, Dir: d.Handle, Name: name}
		if err := v.object(ctx, d, name, &src, there); err != nil {
			v.failAt(ctx, d.Path(name), err, listed{d.Handle, name, own.Handle, own.Attr.Nlink})
			return ctx.Err()
		}
		v.done()
		return nil
	})
}

func (v *rehearsal) object(ctx context.Context, d *delta.Dir, name string, src *transfer.Source, there *vfs.Entry) error {
	if there == nil {
		v.copyOf(d.Path(name), &src.Attr)
		return nil
	}
	o, err := v.known(ctx, d.Data.(vfs.Handle), name, there)
	if err != nil {
		return err
	}
	return v.judge(ctx, d.Path(name), src, &o)
}

// judge says what would become of an object that the destination has.
func (v *rehearsal) judge(ctx context.Context, path string, src *transfer.Source, o *object) error {
	if v.keepsAll() {
		v.needsNothing(&src.Attr)
		return nil
	}
	if o.attr.Type == vfs.TypeDir {
		if !v.deletes() {
			return errDirInTheWay
		}
		v.toDelete.Add(1)
	}
	if v.o.Sync == nil {
		v.copyOf(path, &src.Attr)
		return nil
	}
	same, timely, err := v.alikeThere(ctx, nil, src, o)
	switch {
	case err != nil:
		return err
	case same && !v.relinked(path, src, o):
		return v.compared(ctx, path, src, o, timely)
	}
	v.copyOf(path, &src.Attr)
	return nil
}

// relinked reports whether a name that has the same bytes would become a link to another object, that of the first name of its source.
func (v *rehearsal) relinked(path string, src *transfer.Source, o *object) bool {
	_, why := v.pairs.meet(&src.Attr, &o.attr, func() string { return path })
	return why != "" && src.Attr.Nlink > 1
}

// copyOf tells of an object that would be copied, and counts it.
func (v *rehearsal) copyOf(path string, a *vfs.Attr) {
	switch a.Type {
	case vfs.TypeDir:
		v.progress.Add(progress.Dirs, 1)
	case vfs.TypeReg:
		v.progress.Add(progress.Files, 1)
		v.progress.Add(progress.Bytes, a.Size)
	case vfs.TypeSymlink:
		v.progress.Add(progress.Symlinks, 1)
	default:
		v.progress.Add(progress.Nodes, 1)
	}
	v.would(wouldCopy, path)
}

// compared counts an object that the destination has, and tells of it if it has other attributes.
func (v *rehearsal) compared(ctx context.Context, path string, src *transfer.Source, there *object, timely bool) error {
	differs, err := v.differs(ctx, src, there)
	if err != nil {
		return err
	}
	v.needsNothing(&src.Attr)
	if differs || !timely {
		v.attrsSet.Add(1)
		v.would(wouldSet, path)
	}
	return nil
}

// Extra notes what the source does not have.
func (v *rehearsal) Extra(_ context.Context, d *delta.Dir, e *vfs.Entry) error {
	v.extras.add(d.Path(string(e.Name)))
	v.toDelete.Add(1)
	return nil
}

// Fault reports what the walk could not read.
func (v *rehearsal) Fault(ctx context.Context, d *delta.Dir, name string, err error) error {
	v.fault(ctx, d.Dir, name, err)
	return ctx.Err()
}

// FaultRight reports what could not be read of the destination's directory.
func (v *rehearsal) FaultRight(ctx context.Context, d *delta.Dir, name string, err error) error {
	v.failMore(ctx, d.Path(name), fmt.Errorf("list the destination: %w", err))
	return ctx.Err()
}

// Leave does nothing but forget.
func (v *rehearsal) Leave(ctx context.Context, d *delta.Dir, _ error) error {
	if h := d.Data.(vfs.Handle); !h.IsZero() && h != v.target {
		forget(v.o.Dest.FS, h)
	}
	return ctx.Err()
}
