package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Directories of a tree that is in use change until the copy ends. Mostly files are made and
// removed in them, and a file that was made after the last listing is in no copy rightly: the copy
// could have ended before. But what was moved there may have been in the source all the time, and
// met nowhere. The two are told apart by the object's mtime, which a rename leaves: what is older
// than the last change that was known before the directory was listed was not made since.
//
// So the changed directories are listed once more, and nothing is copied. If there is an object that
// is older, and the copy does not have it under this name, the directory is a failure. All of them
// are if the walk before, too, has met such objects: then things are being moved about, and one
// that went from directory to directory may have escaped each listing. Otherwise the directories
// are noted. This does not see an object that is moved, and written to in the same time, nor one
// that escapes two listings when nothing else is moved.

// errLate says that a directory may have what is in no copy.
var errLate = errors.New("objects are moved in the source while it is copied, and one that came into the directory may be in no copy; run the same command again")

// judge tells of directories that have changed each time they were listed.
func (v *secondLook) judge(ctx context.Context, changed []*seenDir) error {
	last := &lastLook{v}
	err := walk.Tree(ctx, v.o.Source.FS, v.o.Source.Handle, v.choosing(walk.Options{Descend: last.descend}), last)
	v.flying.Wait()
	if err != nil {
		return err
	}
	for _, s := range changed {
		switch {
		case s.late != "":
			v.failLate(ctx, s.path(), fmt.Errorf("%w: %q was found in the end", errLate, s.late))
		case v.moved.Load():
			v.failLate(ctx, s.path(), errLate)
		default:
			v.noteChanged(s.path(), "it goes on changing while it is copied, and is not listed any more; what was made in it meanwhile may not be in the copy")
		}
	}
	return nil
}

func (v *secondLook) failLate(ctx context.Context, path string, err error) {
	v.dirsChanged.Add(1)
	v.failMore(ctx, path, err)
}

// lastLook is the visitor that looks for what came too late.
type lastLook struct{ *secondLook }

// lastDir is a directory of the source, to the visitor.
type lastDir struct {
	at      vfs.Handle // its copy; zero: there is none
	seen    *seenDir   // it, or the one above it that was seen
	unknown bool       // it is not the one that was seen
}

func (v *lastLook) descend(child *walk.Dir) bool {
	up := child.Parent.Data.(*lastDir)
	if up.unknown {
		return true
	}
	was := up.seen.child(child.Name)
	if was == nil {
		return up.seen.changed && !up.seen.full
	}
	return was.changed || was.way
}

// Enter finds the copy of a directory. Of one that has none, and is older than the last listing,
// all that is below it is late.
func (v *lastLook) Enter(ctx context.Context, d *walk.Dir) error {
	if d.Parent == nil {
		d.Data = &lastDir{at: v.target, seen: v.seen[0].root}
		return nil
	}
	up := d.Parent.Data.(*lastDir)
	l := &lastDir{seen: up.seen, unknown: true}
	if was := up.seen.child(d.Name); !up.unknown && was != nil && !was.replaced {
		l.seen, l.unknown = was, false
	}
	d.Data = l
	there, ok, err := v.copyOf(ctx, up, d.Name)
	switch {
	case err != nil:
		v.failMore(ctx, d.Path(""), err)
		return walk.ErrSkipDir
	case ok && there.attr.Type == vfs.TypeDir:
		l.at = there.handle
	case v.late(&d.Attr, false, nil):
		v.tell(l.seen, d.Path(""))
		return walk.ErrSkipDir
	}
	return nil
}

// copyOf finds what has name in the copy of the directory.
func (v *lastLook) copyOf(ctx context.Context, l *lastDir, name string) (there object, ok bool, err error) {
	if l.at.IsZero() {
		return there, false, nil
	}
	there, ok, err = lookup(ctx, v.o.Dest.FS, l.at, name)
	if err != nil {
		err = fmt.Errorf("look the copy up: %w", err)
	}
	return there, ok, err
}

// Entry looks for an object that is older than the last listing in the copy.
func (v *lastLook) Entry(ctx context.Context, d *walk.Dir, e *vfs.Entry) error {
	l := d.Data.(*lastDir)
	if !l.unknown && !l.seen.changed || !v.late(&e.Attr, false, nil) {
		return nil
	}
	return v.spawn(ctx, d, e, func(name string, own *vfs.Entry) error {
		there, ok, err := v.copyOf(ctx, l, name)
		if err != nil {
			v.failMore(ctx, d.Path(name), err)
		} else if !(ok && v.alike(&own.Attr, &there.attr)) && v.late(&own.Attr, ok, &there.attr) {
			v.tell(l.seen, d.Path(name))
		}
		return ctx.Err()
	})
}

// tell notes what came into s too late, once.
func (v *lastLook) tell(s *seenDir, path string) {
	t := &v.seen[0]
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.late == "" {
		s.late = path
	}
}

// Fault reports what cannot be listed, unless it is gone.
func (v *lastLook) Fault(ctx context.Context, d *walk.Dir, name string, err error) error {
	if !errors.Is(err, walk.ErrVanished) {
		v.failMore(ctx, d.Path(name), err)
	}
	return ctx.Err()
}

// Leave does nothing: the copy is as it was.
func (*lastLook) Leave(context.Context, *walk.Dir, error) error { return nil }
