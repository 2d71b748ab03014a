package job

import (
	"context"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// secondLook is the visitor of a second walk, which a copy makes if directories of the source
// have changed. It lists these again, once, and copies what is not in the copy as it is now.
// Directories that the first walk has not met, or not under this name, it copies with all that is
// below them. Others it does not list.
type secondLook struct {
	*copyJob
	delta time.Duration // times of the copy that are closer than this to the source's are the same
}

// secondWalk looks for directories that have changed, and copies what is new in them. Those that
// change once more are told of, and left: a tree that is in use could go on for ever.
func (j *copyJob) secondWalk(ctx context.Context) error {
	first := &j.seen[0]
	changed, err := j.lookOver(ctx, first)
	if len(changed) == 0 || err != nil {
		return err
	}
	info, err := j.o.Dest.FS.Info(ctx, j.target, vfs.InfoLimits)
	if err != nil {
		return fmt.Errorf("limits of the destination: %w", err)
	}
	v := &secondLook{copyJob: j, delta: max(info.TimeDelta, 1)}
	j.seeing = &j.seen[1]
	err = walk.Tree(ctx, j.o.Source.FS, j.o.Source.Handle, walk.Options{Descend: v.descend}, v)
	j.flying.Wait()
	if err != nil {
		return err
	}
	changed, err = j.lookOver(ctx, j.seeing)
	for _, s := range changed {
		j.noteChanged(s.path(), "it goes on changing while it is copied, and is not listed any more; what came into it meanwhile may not be in the copy")
	}
	return err
}

// descend reports whether a directory has to be listed again.
func (v *secondLook) descend(child *walk.Dir) bool {
	up := child.Parent.Data.(*dirState).was
	if up == nil {
		return true
	}
	was := up.child(child.Name)
	if was == nil {
		return up.changed && !up.full
	}
	return was.changed || was.way
}

// Enter takes the copy of a directory that was copied, or makes a new one.
func (v *secondLook) Enter(ctx context.Context, d *walk.Dir) error {
	if d.Parent == nil {
		return v.enterAgain(ctx, d)
	}
	up := d.Parent.Data.(*dirState)
	var was *seenDir
	if up.was != nil {
		was = up.was.child(d.Name)
	}
	if was != nil && !was.replaced {
		return v.enterBelow(ctx, d, was)
	}
	v.dirs.take(d.Handle, &d.Attr) // it had vanished, and is found
	if err := v.spare(ctx, up, d.Name); err != nil {
		v.found(&d.Attr)
		v.fail(ctx, d.Path(""), err)
		return walk.ErrSkipDir
	}
	return v.copyJob.Enter(ctx, d)
}

// enterAgain takes the root of the copy.
func (v *secondLook) enterAgain(ctx context.Context, d *walk.Dir) error {
	s := &dirState{handle: v.target, attr: v.root, key: rootKey(v.o.Owner), made: new(Made), dir: d, was: v.seen[0].root}
	s.seen = v.seeing.add(nil, "", &d.Attr)
	d.Data = s
	s.plain = v.ask(ctx, d)
	if v.keepsOwn(d) {
		return nil
	}
	if err := v.reopen(ctx, s); err != nil {
		return fmt.Errorf("the copy's root: %w", err)
	}
	return nil
}

// spare returns an error if name leads to what this run has made under another one. The names
// that were made in the first walk are not kept. So where names are folded, one that leads to
// something is looked for in the listing, and refused if it is not there in this form.
func (v *secondLook) spare(ctx context.Context, s *dirState, name string) error {
	_, there, err := lookup(ctx, v.o.Dest.FS, s.handle, name)
	if err == nil && there {
		err = v.tryOut(ctx, s.made, s.handle, s.dirPath(""))
	}
	if err != nil || !there || !s.made.folds.any() {
		return err
	}
	for e, err := range walk.List(ctx, v.o.Dest.FS, s.handle, 0) {
		if err != nil || string(e.Name) == name {
			return err
		}
	}
	return errFolded
}

// Entry copies an object of a changed directory, if the copy does not have it as it is now.
func (v *secondLook) Entry(ctx context.Context, d *walk.Dir, e *vfs.Entry) error {
	s := d.Data.(*dirState)
	switch {
	case s.was == nil:
		return v.copyJob.Entry(ctx, d, e)
	case !s.was.changed:
		return nil
	}
	return v.spawn(ctx, d, e, func(name string, own *vfs.Entry) error {
		has, err := v.has(ctx, s, name, &own.Attr)
		if has {
			return nil
		}
		v.found(&own.Attr)
		if err == nil {
			err = v.spare(ctx, s, name)
		}
		if err != nil {
			v.start()
			v.fail(ctx, d.Path(name), err)
			return ctx.Err()
		}
		return v.item(ctx, s, name, own)
	})
}

// has reports whether the copy has name as it is now. Another name of the directory that leads to
// the same object is an error, where names are folded.
func (v *secondLook) has(ctx context.Context, s *dirState, name string, now *vfs.Attr) (has bool, err error) {
	end, err := v.beginName(ctx, s, name)
	if err != nil {
		return false, err
	}
	there, ok, err := lookup(ctx, v.o.Dest.FS, s.handle, name)
	has = err == nil && ok && v.alike(now, &there.attr)
	end(has)
	return has, err
}

// alike reports whether a copy has the type, size and time of its source.
func (v *secondLook) alike(src, dst *vfs.Attr) bool {
	const known = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime
	return src.Has(known) && dst.Has(known) && src.Type == dst.Type && (src.Type != vfs.TypeReg || src.Size == dst.Size) &&
		transfer.NFSTime(src.Mtime).Sub(transfer.NFSTime(dst.Mtime)).Abs() < v.delta
}
