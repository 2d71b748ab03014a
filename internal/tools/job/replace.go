package job

import (
	"context"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// replacement is the visitor of the pass that copies what could not be copied before something of
// another type was deleted. What the destination has by then was copied, or found the same: it stays.
type replacement struct{ *copyJob }

// replaceConflicts copies what has come free. Objects with several names are met with all of them, so
// that they stay linked.
func (j *copyJob) replaceConflicts(ctx context.Context) error {
	j.replacing, j.links, j.seeing = true, linkTable{}, new(seenDirs)
	ctx, end := j.watch(ctx, func() int { return len(j.slots) })
	err := delta.Tree(ctx, j.o.Source.FS, j.o.Source.Handle, j.o.Dest.FS, delta.Options{Walk: j.choosing(walk.Options{}), NoExtras: true}, &replacement{j})
	j.flying.Wait()
	return end(err)
}

// Enter takes a directory that was copied, or makes a new one.
func (v *replacement) Enter(ctx context.Context, d *delta.Dir, there *vfs.Entry) (joined vfs.Handle, err error) {
	var s *dirState
	switch {
	case d.Parent == nil:
		s = &dirState{handle: v.target, key: rootKey(v.o.Owner), made: new(Made)}
		if s.attr, err = v.o.Dest.FS.GetAttr(ctx, v.target, vfs.MaskV3); err != nil {
			return joined, err
		}
		s.listed = sync.OnceValue(func() bool { return v.t.Listed(ctx, v.o.Dest.FS, s.handle, &s.attr) })
	case there == nil || d.Parent.Data.(*dirState).was == nil:
		return v.copyJob.Enter(ctx, d, there)
	default:
		if s, err = v.listedDir(ctx, d.Parent.Data.(*dirState), d.Name, there); err != nil {
			return v.copyJob.Enter(ctx, d, there) // which reports it
		}
	}
	s.was, s.seen = new(seenDir), new(seenDir) // it is counted, and is not looked at again
	s.dir, s.joined, d.Data = d, true, s
	s.lists = v.ask(ctx, d)
	return s.handle, nil
}

// Entry copies what is not there.
func (v *replacement) Entry(ctx context.Context, d *delta.Dir, e, there *vfs.Entry) error {
	if there != nil && d.Data.(*dirState).was != nil {
		if there.Attr.Has(vfs.MaskType) && there.Attr.Type == vfs.TypeDir { // something in it was not to be deleted
			v.failMore(ctx, d.Path(string(e.Name)), errDirInTheWay)
			return ctx.Err()
		}
		if e.Attr.Nlink < 2 {
			return nil
		}
	}
	return v.copyJob.Entry(ctx, d, e, there)
}
