package job

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/remove"
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
