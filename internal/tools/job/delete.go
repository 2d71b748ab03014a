package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/remove"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// A sync deletes last. While it copies it notes which directories of the destination have names that
// the source lacks, or a directory where the source has none, or the reverse. When all is copied, and
// nothing has failed, those directories are joined once more: what is deleted was in neither of two
// listings of the source, the first and one when all was copied, a LOOKUP there has not found it just before, and the source's directory
// still had its name then (package delta). A fault of the source in this pass ends it.

// DeleteOptions say how a sync deletes what the source does not have.
type DeleteOptions struct {
	// FromEmpty allows it also where the source is empty, or has none of the names that the
	// destination has: mostly something is not mounted there, or it is another directory.
	FromEmpty bool
	// Max, if not nil, is how many objects may be deleted, directories and all that is below them
	// counted. If there are more, none is.
	Max *uint64
	// OneFileSystem says that the source shows directories as empty if something is mounted on them.
	// What the destination has in directories that are empty stays.
	OneFileSystem bool
}

var (
	// ErrEmpty says that the source has nothing that the destination has, and nothing was done.
	ErrEmpty = errors.New("nothing was copied or deleted")
	// ErrTooMany says that more would have to be deleted than DeleteOptions.Max.
	ErrTooMany = errors.New("more would be deleted than may be")

	// ErrHoldsSource says that the source lies in what would be deleted.
	ErrHoldsSource = errors.New("it is the source, which lies in the destination, and it is not deleted")

	// errLater says that an object of the destination must be deleted before the source's is copied.
	errLater = errors.New("something of another type has the name")
	// errNotShown ends the deletion.
	errNotShown = errors.New("nothing more is deleted, since the source could not be read")
)

// eventDeleted is the type of the event of an object that was deleted.
const eventDeleted = "deleted"

// deletes reports whether the job deletes.
func (j *copyJob) deletes() bool { return j.o.Sync != nil && j.o.Sync.Delete != nil }

// mayDelete reports whether what is in the way may yet be deleted.
func (j *copyJob) mayDelete() bool { return j.deletes() && !j.replacing }

// maxTried is how many names of the destination are looked up in the source before a sync that deletes
// begins.
const maxTried = 64

// refuseEmpty refuses to delete where the source is empty, or has none of the first maxTried names
// that the destination lists.
func (j *copyJob) refuseEmpty(ctx context.Context) error {
	if !j.deletes() || j.o.Sync.Delete.FromEmpty || j.o.Name != "" {
		return nil
	}
	names, err := j.firstNames(ctx, j.o.Dest, maxTried)
	if err != nil {
		return fmt.Errorf("list the destination: %w", err)
	}
	if len(names) == 0 {
		return nil
	}
	has, err := j.firstNames(ctx, j.o.Source, 1)
	if err != nil {
		return fmt.Errorf("list the source: %w", err)
	}
	if len(has) == 0 {
		return fmt.Errorf("the source is empty, and the destination is not: %w. Is something not mounted? "+
			"--delete-from-empty deletes all that the destination has", ErrEmpty)
	}
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { _, _, _, errs[i] = j.o.Source.FS.Lookup(ctx, j.o.Source.Handle, name) })
	}
	all.Wait()
	for _, err := range errs {
		if err == nil {
			return nil
		}
		if !errors.Is(err, vfs.ErrNoEnt) {
			return fmt.Errorf("look up in the source: %w", err)
		}
	}
	return fmt.Errorf("the source has none of %d names that the destination has, such as %q: %w. Is it another directory? "+
		"--delete-from-empty deletes what the source lacks all the same", len(names), names[0], ErrEmpty)
}

// firstNames are up to n names of a directory that the job's filter chooses. Those that cannot be names
// are left out.
func (j *copyJob) firstNames(ctx context.Context, at Place, n int) (names []string, err error) {
	for e, err := range at.FS.ReadDir(ctx, at.Handle, vfs.Pos{}, vfs.MaskType|vfs.MaskSize|vfs.MaskMtime|vfs.MaskHandle, 0) {
		if err != nil {
			return nil, err
		}
		if walk.CheckName(e.Name) != nil {
			continue
		}
		_, chosen, err := j.wanted(ctx, &walk.Dir{}, at, e)
		if err != nil && !errors.Is(err, vfs.ErrNoEnt) {
			return nil, err
		}
		if chosen {
			names = append(names, string(e.Name))
		}
		if len(names) == n {
			break
		}
	}
	return names, nil
}

// condemned notes that something in a directory is to be deleted in the end.
func (j *copyJob) condemned(s *dirState) {
	j.toDelete.Add(1)
	for s.seen == nil && s.dir.Parent != nil {
		s = s.up(s.dir) // what is below it and is not known is listed again
	}
	j.seen[0].condemn(s.seen)
}

// condemn notes that something below s is to be deleted.
func (t *seenDirs) condemn(s *seenDir) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; s != nil && !s.condemned; s = s.up {
		s.condemned = true
	}
}

// later notes an object that cannot be copied before another is deleted. It is copied then.
func (j *copyJob) later(s *dirState, a *vfs.Attr) {
	j.conflicts.Add(1)
	j.condemned(s)
	j.progress.Add(progress.FoundItems, ^uint64(0))
	if a.Type == vfs.TypeReg {
		j.progress.Add(progress.FoundBytes, -a.Size)
	}
}

// deleteExtras deletes what the source does not have, when all is copied.
func (j *copyJob) deleteExtras(ctx context.Context) error {
	if !j.deletes() || j.toDelete.Load() == 0 {
		return nil
	}
	if j.progress.Get(progress.Errors) > j.failedBefore {
		j.progress.Report(progress.Event{Type: "note", Kind: KindNotDeleted, Message: "nothing is deleted, as items have failed: " +
			"what could not be read would look as if the source did not have it"})
		return nil
	}
	if j.filter != nil {
		for path := range j.filter.Missing() {
			j.progress.Report(progress.Event{Type: "note", Kind: KindNotDeleted, Path: path, Message: "nothing is deleted, as this " +
				"path is listed, and the source does not have it"})
			return nil
		}
	}
	if err := j.source.there(ctx); err != nil {
		return err
	}
	n, err := j.survey(ctx, nil)
	if err != nil {
		return err
	}
	if max := j.o.Sync.Delete.Max; max != nil {
		if j.surveyed.Store(n); n > *max {
			return fmt.Errorf("%w: %d objects, and --max-delete allows %d. Nothing was deleted", ErrTooMany, n, *max)
		}
	}
	defer j.tellLeft(ctx)
	if j.dry() {
		_, err := j.survey(ctx, func(path string) {
			j.deleted.Add(1)
			j.would(wouldDelete, path)
		})
		return err
	}
	watched, end := j.watch(ctx, func() int { return remove.DefaultParallel })
	if err := end(j.deleteNow(watched)); err != nil || j.conflicts.Load() == 0 {
		return err
	}
	return j.replaceConflicts(ctx)
}

// tellLeft says what stays for the next sync.
func (j *copyJob) tellLeft(ctx context.Context) {
	later, over := j.extras.left()
	if over > 0 {
		j.failMore(ctx, ".", fmt.Errorf("%d names more than %d are to be deleted: the same command deletes them", over, maxExtras))
	}
	if later > 0 {
		j.progress.Report(progress.Event{Type: "note", Kind: KindNotDeleted, Message: "something that the source had when it was listed, " +
			"and has not any more, is not deleted. If the source is as it should be, the same command deletes it"})
	}
}

// KindNotDeleted is the kind of a note that says why nothing is deleted.
const KindNotDeleted = "not_deleted"

// deleteNow is the pass that deletes.
func (j *copyJob) deleteNow(ctx context.Context) error {
	var asked atomic.Uint64
	rm := remove.New(ctx, j.o.Dest.FS, remove.Options{
		Open: true,
		Ask: func(string, vfs.Type) (bool, error) {
			if max := j.o.Sync.Delete.Max; max != nil && asked.Add(1) > *max {
				return false, fmt.Errorf("%w: it goes on growing, and --max-delete allows %d", ErrTooMany, *max)
			}
			return true, nil
		},
		Enter: func(path string, a *vfs.Attr) error { return j.spareSource(ctx, path, a) },
		Removed: func(path string, _ vfs.Type) {
			j.deleted.Add(1)
			if j.o.Each {
				j.progress.Report(progress.Event{Type: eventDeleted, Path: path})
			}
		},
		Failed: func(path string, err error) error {
			j.failMore(ctx, path, fmt.Errorf("delete: %w", err))
			return ctx.Err()
		},
	})
	v := &deletion{copyJob: j, condemn: func(d *delta.Dir, e *vfs.Entry, below any) error {
		s := d.Data.(*deletedIn)
		s.open(ctx, j.o.Dest.FS)
		d.Hold()
		return rm.Remove(remove.Target{
			Dir: s.handle, Name: string(e.Name), Handle: e.Handle, Attr: e.Attr, Path: d.Path(string(e.Name)), Within: s.within(), Done: d.Release,
			Choice: j.choice(below),
		})
	}}
	err := v.join(ctx)
	if werr := rm.Wait(); err == nil || werr != nil {
		err = werr
	}
	return err
}

// spareSource ends the deletion where it would come to the source.
func (j *copyJob) spareSource(ctx context.Context, path string, a *vfs.Attr) error {
	if j.mayBeSource(ctx, a) {
		return fmt.Errorf("%s: %w", path, ErrHoldsSource)
	}
	return nil
}

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
	if v.o.Sync.Delete.OneFileSystem && !d.Data.(*deletedIn).some.Load() {
		return nil // something may be mounted there
	}
	if !v.extras.has(d.Path(string(e.Name))) {
		return nil
	}
	return v.unwanted(ctx, d, e)
}

// unwanted deletes what the destination has, unless the job's filter leaves it out.
func (v *deletion) unwanted(ctx context.Context, d *delta.Dir, e *vfs.Entry) error {
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
	return v.condemn(d, e, below)
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
