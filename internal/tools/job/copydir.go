package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxUnsynced is how many finished files of a directory wait for its sync before they
// enter the record. At the bound the directory is synced.
const maxUnsynced = 256

// dirState is what a copy knows of a directory of the destination.
type dirState struct {
	handle vfs.Handle
	attr   vfs.Attr
	key    pathKey
	dir    *delta.Dir // of the source; nil if the job copies a single object
	joined bool       // it was there before, and is listed beside the source's

	made *Made

	created bool        // by this run
	listed  func() bool // whether it may have access control lists from before this run, or from the directory above
	lists   *dirLists   // of the source's; nil if the job copies a single object
	seen    *seenDir    // nil if there was no place for it
	was     *seenDir    // in a second walk: what the first one has met; nil: it has not met it
	missing atomic.Bool // something that was listed in the source's directory is gone

	touched atomic.Bool // something in it was made or removed, or it was opened
	handed  atomic.Bool // workers were given files of it
	opening sync.Once   // see touch
	asIs    bool        // nothing about it was changed

	closed     bool        // others cannot enter it until it is finished
	unfinished atomic.Bool // an item in it failed with an error that may end the job: see cutsOff

	// linked says that a file in it may get further names, which are made by its handle.
	linked atomic.Bool

	mu       sync.Mutex
	unsynced []recorded // finished, but their names may not be stable yet
}

// isRoot reports whether it is the directory that the tree's root becomes.
func (s *dirState) isRoot() bool { return s.dir != nil && s.dir.Parent == nil }

// Enter makes the directory in the destination. One that is there already is joined with that of
// the source, if what is in it may be the copy.
func (j *copyJob) Enter(ctx context.Context, d *delta.Dir, there *vfs.Entry) (joined vfs.Handle, err error) {
	j.found(&d.Attr)
	j.mistrustReplaced(ctx, d.Dir)
	if d.Parent == nil {
		err = j.enterTree(ctx, d)
	} else {
		err = j.enterBelow(ctx, d, there, nil)
	}
	if err != nil {
		return joined, err
	}
	if s := d.Data.(*dirState); s.joined {
		joined = s.handle
	}
	return joined, nil
}

// joins reports whether directories of the destination are listed beside those of the source.
func (j *copyJob) joins() bool { return j.o.Sync != nil || j.goesOn() }

// goesOn reports whether an earlier run has copied something, by the record.
func (j *copyJob) goesOn() bool { return j.record != nil && j.record.resumed }

// enterTree makes or takes the root of the copy.
func (j *copyJob) enterTree(ctx context.Context, d *delta.Dir) error {
	state, err := j.enterRoot(ctx)
	if err != nil {
		return fmt.Errorf("the copy's root: %w", err)
	}
	d.Data, state.dir = state, d
	state.seen = j.seeing.add(nil, "", &d.Attr)
	state.joined = !state.created && j.joins()
	state.lists = j.ask(ctx, d)
	if state.created {
		j.open(ctx, d, state)
	}
	return j.refuseIntoItself(ctx, d.Dir)
}

// enterBelow makes a directory below the copy's root. there is what the destination has listed under
// its name, was what an earlier walk of this run knows of it.
func (j *copyJob) enterBelow(ctx context.Context, d *delta.Dir, there *vfs.Entry, was *seenDir) error {
	parent := d.Parent.Data.(*dirState)
	var seen *seenDir
	if parent.seen != nil {
		seen = j.seeing.add(parent.seen, d.Name, &d.Attr)
	}
	state, err := j.makeDir(ctx, parent, d.Name, there)
	if errors.Is(err, errLater) {
		j.later(parent, &d.Attr)
		if seen != nil {
			j.seen[0].condemn(seen) // so that it is met again
		}
		return walk.ErrSkipDir
	}
	if err != nil {
		parent.unfinished.CompareAndSwap(false, cutsOff(err))
		j.fail(ctx, d.Path(""), err)
		if err := ctx.Err(); err != nil {
			return err
		}
		return walk.ErrSkipDir
	}
	j.close(state)
	d.Data, state.dir, state.seen, state.was = state, d, seen, was
	state.joined = !state.created && was == nil && j.joins()
	state.lists = j.ask(ctx, d)
	return j.refuseIntoItself(ctx, d.Dir)
}

// enterRoot makes or takes the directory that the tree's root becomes.
func (j *copyJob) enterRoot(ctx context.Context) (*dirState, error) {
	top, err := j.top(ctx)
	if err != nil {
		return nil, err
	}
	state := top
	if j.o.Name != "" {
		if state, err = j.makeDir(ctx, top, j.o.Name, nil); err != nil {
			return nil, err
		}
	}
	if j.o.Sync == nil || state.created { // else it is tried out before something is made in it, as nothing may be
		if err = j.tryOutDest(ctx, state, ""); err != nil {
			return nil, err
		}
	}
	state.key = rootKey(j.o.Owner)
	if _, ok := idOf(&state.attr); !ok {
		if state.attr, err = j.o.Dest.FS.GetAttr(ctx, state.handle, vfs.MaskV3); err != nil {
			return nil, err
		}
	}
	if j.o.Name == "" {
		open := j.reopen
		if j.o.KeepDest {
			open = func(ctx context.Context, s *dirState) error { return j.sweep(ctx, s.handle) }
		}
		if err := open(ctx, state); err != nil {
			return nil, err
		}
	}
	j.targetID, _ = idOf(&state.attr)
	j.target, j.root = state.handle, state.attr
	if j.o.Rooted != nil {
		return state, j.o.Rooted(state.attr)
	}
	return state, nil
}

// top is the directory that receives the copy. It knows what other copies have made there.
func (j *copyJob) top(ctx context.Context) (*dirState, error) {
	s := &dirState{handle: j.o.Dest.Handle, key: rootKey(j.o.Owner), made: j.o.Made, listed: j.destListed}
	if s.made == nil {
		s.made = new(Made)
		return s, nil
	}
	return s, j.tryOutDest(ctx, s, "..")
}

// tryOutDest is tryOut for the directory of the copy, or that receives it.
func (j *copyJob) tryOutDest(ctx context.Context, s *dirState, path string) error {
	try := func() error { return j.tryOut(ctx, s.made, s.handle, path) }
	if s.created || s.made.tried.Load() {
		return try()
	}
	return j.keepMtime(ctx, s.handle, try)
}

// keepMtime calls probe, which makes and removes a temporary in dir, and gives dir its mtime again.
// A change that somebody else makes there in that instant shows in the ctime alone.
func (j *copyJob) keepMtime(ctx context.Context, dir vfs.Handle, probe func() error) error {
	f := j.o.Dest.FS
	before, err := f.GetAttr(ctx, dir, vfs.MaskMtime)
	if err != nil {
		return fmt.Errorf("look at the destination: %w", err)
	}
	found := probe()
	if found != nil && !errors.Is(found, ErrIntoItself) || !before.Has(vfs.MaskMtime) {
		return found
	}
	set := vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: before.Mtime}
	if _, err = f.SetAttr(ctx, dir, &set, nil); found == nil && err != nil && !cannotMake(err) { // it may be another's
		return fmt.Errorf("give the destination its time again: %w", err)
	}
	return found
}

// Extra notes what the source does not have. It is deleted when all is copied.
func (j *copyJob) Extra(ctx context.Context, d *delta.Dir, e *vfs.Entry) error {
	s := d.Data.(*dirState)
	if j.parts.spares(string(e.Name)) {
		return ctx.Err()
	}
	if _, wanted, err := j.wanted(ctx, d.Dir, Place{FS: j.o.Dest.FS, Handle: s.handle}, e); wanted || err != nil {
		j.extras.add(d.Path(string(e.Name)))
		j.condemned(s) // what is at fault shows then
	}
	return ctx.Err()
}

// FaultRight reports what could not be read of the destination's directory: nothing more is copied
// into it.
func (j *copyJob) FaultRight(ctx context.Context, d *delta.Dir, name string, err error) error {
	err = fmt.Errorf("list the destination: %w", err)
	d.Data.(*dirState).unfinished.CompareAndSwap(false, cutsOff(err))
	j.failMore(ctx, d.Path(name), err)
	return ctx.Err()
}

// Fault reports what the walk could not read.
func (j *copyJob) Fault(ctx context.Context, d *delta.Dir, name string, err error) error {
	if errors.Is(err, walk.ErrVanished) {
		d.Data.(*dirState).missing.Store(true)
	}
	j.fault(ctx, d.Dir, name, err)
	return ctx.Err()
}

const (
	// groupMayAll are the permissions of a group.
	groupMayAll = 0o070
	// ownerMayAll is what a directory needs while it is being filled.
	ownerMayAll = 0o700
	// ownerMayList are the permissions without which a directory is closed to
	// its own owner.
	ownerMayList = 0o500
)

// Leave gives the directory its attributes and makes its names stable.
func (j *copyJob) Leave(ctx context.Context, d *delta.Dir, incomplete error) error {
	state := d.Data.(*dirState)
	if err := ctx.Err(); err != nil {
		return err // it may be incomplete, so it stays closed
	}
	if state.seen == nil && j.hasChanged(ctx, d.Dir) {
		j.noteChanged(d.Path(""), "it changed while it was copied, and is not listed again; what came into it meanwhile may not be in the copy")
	}
	if err := j.sweepAfter(ctx, state); err != nil {
		j.failMore(ctx, d.Path(""), err)
	}
	closed := d.Attr.Mode&ownerMayList != ownerMayList
	if closed && j.syncer != nil {
		// Once it has its mode, we may no longer be able to open it.
		if err := j.flush(ctx, state, true); err != nil {
			return err
		}
	}
	if j.leave(ctx, d, state, incomplete) && (state.asIs || j.syncDir(ctx, state, closed)) {
		if err := j.flush(ctx, state, false); err != nil {
			return err
		}
	}
	if err := j.letGo(ctx, state); err != nil {
		return err
	}
	return ctx.Err()
}

// syncDir makes names and attributes of a directory stable, if the destination has a
// Syncer. A failed sync is a failed item, except when the directory's new mode locks us
// out: then its names were synced before.
func (j *copyJob) syncDir(ctx context.Context, s *dirState, closed bool) bool {
	if j.syncer == nil {
		return true
	}
	err := j.syncer.Sync(ctx, s.handle)
	if err == nil || closed && errors.Is(err, fs.ErrPermission) {
		return true
	}
	j.failMore(ctx, s.dir.Path(""), fmt.Errorf("sync the directory: %w", err))
	return false
}

// flush enters the finished files of a directory into the record, after a sync of the
// directory if sync is set. If the sync fails they stay out.
func (j *copyJob) flush(ctx context.Context, s *dirState, sync bool) error {
	s.mu.Lock()
	done := s.unsynced
	s.unsynced = nil
	j.unsettled.Delete(s)
	s.mu.Unlock()
	if sync && !j.syncDir(ctx, s, false) {
		return ctx.Err()
	}
	return j.enter(done...)
}

// enter adds files to the record.
func (j *copyJob) enter(done ...recorded) error { return j.forgive(j.record.append(done...)) }

// forgive tells of an error of a record that is optional, once, and returns that of another.
func (j *copyJob) forgive(err error) error {
	if err == nil || !j.o.RecordOptional {
		return err
	}
	j.unkept.Do(func() {
		j.progress.Report(progress.Event{Type: "note", Message: "an interrupted copy will copy again what is copied from now on: " + err.Error()})
	})
	return nil
}

// settleTime bounds the last syncs of a job that was broken off. Files that are not stable
// by then are copied again.
const settleTime = 10 * time.Second

// settle enters finished files into the record after the job was broken off, so that they
// are not copied again. It covers directories that the walk will not leave any more.
func (j *copyJob) settle(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	for s := range j.unsettled.Range {
		err = errors.Join(err, j.flush(ctx, s.(*dirState), true))
	}
	return err
}

// finished enters a file into the record: now, or when its directory is synced.
func (j *copyJob) finished(ctx context.Context, s *dirState, name string, src *vfs.Attr, dst *object) error {
	if j.record == nil {
		return nil
	}
	r := note(j.record.fileKey(s.key, name), src, &dst.attr)
	r.listed, r.xattr = dst.listed, dst.xattr
	if j.syncer == nil {
		return j.enter(r)
	}
	s.mu.Lock()
	s.unsynced = append(s.unsynced, r)
	full := len(s.unsynced) >= maxUnsynced
	j.unsettled.Store(s, nil)
	s.mu.Unlock()
	if full && s.dir != nil {
		return j.flush(ctx, s, true)
	}
	return nil
}
