package job

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxLooks is how often a copy looks whether directories of the source have changed. Each time
// those that have are listed again, but for the last: a tree that is in use could go on for ever.
const maxLooks = 3

// secondLook is the visitor of a further walk, which a copy makes if directories of the source
// have changed. It lists these again, once, and copies what is not in the copy as it is now.
// Directories that the walks so far have not met, or not under this name, it copies with all that
// is below them. Others it does not list.
type secondLook struct {
	*copyJob
	kept  times       // by the destination
	again bool        // it is not the first of its kind
	since time.Time   // the last change that was known before the walk before, by the source's clock
	moved atomic.Bool // it has met what came into a directory since that was listed, and is older
}

// secondWalk looks for directories that have changed, and copies what is new in them. If some
// change each time, judge says what that means.
func (j *copyJob) secondWalk(ctx context.Context) error {
	v := &secondLook{copyJob: j}
	var before time.Time // the walk before
	for n := 1; ; n++ {
		changed, err := j.lookOver(ctx, &j.seen[0])
		if len(changed) == 0 || err != nil {
			return err
		}
		v.since = before
		if n == maxLooks {
			return v.judge(ctx, changed)
		}
		before = j.seen[0].newest
		if v.kept.delta == 0 {
			info, err := j.o.Dest.FS.Info(ctx, j.target, vfs.InfoLimits)
			if err != nil {
				return fmt.Errorf("limits of the destination: %w", err)
			}
			v.kept = times{max(info.TimeDelta, 1), info.NFSTimes}
		}
		v.again = n > 1
		j.failed.again.Store(true)
		v.moved.Store(false)
		later := &j.seen[1]
		*later = seenDirs{seed: j.seen[0].seed}
		j.seeing = later
		err = delta.Tree(ctx, j.o.Source.FS, j.o.Source.Handle, j.o.Dest.FS, delta.Options{Walk: j.choosing(walk.Options{}), Descend: v.descend, NoExtras: true}, v)
		j.flying.Wait()
		if err != nil {
			return err
		}
		j.seen[0].update(later)
	}
}

// descend reports whether a directory has to be listed again.
func (v *secondLook) descend(child *delta.Dir) bool {
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
func (v *secondLook) Enter(ctx context.Context, d *delta.Dir, _ *vfs.Entry) (joined vfs.Handle, err error) {
	if d.Parent == nil {
		return joined, v.enterAgain(ctx, d)
	}
	up := d.Parent.Data.(*dirState)
	var was *seenDir
	if up.was != nil {
		was = up.was.child(d.Name)
	}
	if was != nil && !was.replaced {
		return joined, v.enterBelow(ctx, d, nil, was)
	}
	v.dirs.take(d.Handle, &d.Attr) // it had vanished, and is found
	if v.late(&d.Attr, false, nil) {
		v.moved.Store(true)
	}
	if err := v.spare(ctx, up, d.Name); err != nil {
		v.found(&d.Attr)
		v.fail(ctx, d.Path(""), err)
		return joined, walk.ErrSkipDir
	}
	return v.copyJob.Enter(ctx, d, nil)
}

// enterAgain takes the root of the copy.
func (v *secondLook) enterAgain(ctx context.Context, d *delta.Dir) error {
	s := &dirState{handle: v.target, attr: v.root, key: rootKey(v.o.Owner), made: new(Made), dir: d, was: v.seen[0].root}
	s.seen = v.seeing.add(nil, "", &d.Attr)
	listed := v.t.Listed(ctx, v.o.Dest.FS, s.handle, &s.attr)
	s.listed = func() bool { return listed }
	d.Data = s
	s.lists = v.ask(ctx, d)
	if v.keepsOwn(d) {
		return nil
	}
	if err := v.reopen(ctx, s); err != nil {
		return fmt.Errorf("the copy's root: %w", err)
	}
	return nil
}

// Entry copies an object of a changed directory, if the copy does not have it as it is now.
func (v *secondLook) Entry(ctx context.Context, d *delta.Dir, e, there *vfs.Entry) error {
	s := d.Data.(*dirState)
	switch {
	case s.was == nil:
		return v.copyJob.Entry(ctx, d, e, there)
	case !s.was.changed:
		return nil
	}
	return v.spawn(ctx, d.Dir, e, func(name string, own *vfs.Entry) error {
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
		return v.item(ctx, s, name, own, nil)
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
	if err == nil {
		has = ok && v.alike(now, &there.attr)
		if !has && v.late(now, ok, &there.attr) {
			v.moved.Store(true)
		} else if ok && v.again && now.Type == there.attr.Type {
			has = true // it is written to, and the copy has it as it was
		}
	}
	end(has)
	return has, err
}

// alike reports whether a copy has the type, size and time of its source.
func (v *secondLook) alike(src, dst *vfs.Attr) bool {
	const known = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime
	return src.Has(known) && dst.Has(known) && src.Type == dst.Type && (src.Type != vfs.TypeReg || src.Size == dst.Size) &&
		v.kept.same(src.Mtime, dst.Mtime)
}

// late reports whether an object came into its directory after that was listed, and was not made
// there: it is older. there says that the copy has something under its name, which is not as the
// object is now. A time that differs shows that only if the destination keeps times.
func (v *secondLook) late(src *vfs.Attr, there bool, dst *vfs.Attr) bool {
	switch {
	case !src.Has(vfs.MaskMtime) || !src.Mtime.Before(v.since):
		return false
	case !there || src.Type != dst.Type:
		return true
	}
	return src.Type == vfs.TypeReg && (src.Size != dst.Size || v.timesLost.Load() == 0)
}
