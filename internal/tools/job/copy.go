package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// CopyOptions say what to copy, and how.
type CopyOptions struct {
	Source Place
	// SourceDir and SourceName are where Source was found: they show whether it would be
	// copied onto itself. They are zero for the root of a file system.
	SourceDir  vfs.Handle
	SourceName string
	// Dest is the directory in which Name shall become a copy of Source. An
	// empty Name means that the contents of Source, a directory, go into Dest
	// itself.
	Dest Place
	Name string
	// Above, if not nil, yields the attributes of the directories above the root of Dest's file
	// system, from the nearest up, as far as they can be looked at: whether that is the source, Dest
	// itself does not show.
	Above func(context.Context) iter.Seq[vfs.Attr]
	// There is the object that has Name in Dest, a directory, if the caller has just looked
	// it up; it is not looked up again unless Source is a directory. nil: not known.
	There *There
	// KeepDest says that Dest, if it receives the contents of Source, was there
	// before the job: it keeps its own mode, owner and times.
	KeepDest bool
	// Made, if not nil, is shared by copies into the same Dest, one after the other: where
	// Dest takes several names for one, no copy replaces what another has made.
	Made *Made
	// Rooted, if not nil, is called when the directory that the copy becomes is there, and
	// nothing has been copied into it. An error ends the job.
	Rooted func(vfs.Attr) error

	Pool     *bufpool.Pool
	Random   io.Reader // for names of temporaries; concurrent use
	Now      func() time.Time
	Progress *progress.Tracker // nil: no reports
	More     bool              // another job follows with this Progress: its totals stay open
	Each     bool              // report each item, but for directories, that was made or changed, as an event of type "done"

	// Filter says what is copied of a tree, and is told what is left out; nil: all.
	Filter   *filter.Filter
	Throttle *throttle.Throttle // bounds the bytes that are moved, and may change meanwhile; nil: nothing does
	// OneFileSystem has directories that are on another file system than Source copied as empty ones. What
	// Dest has in directories that are empty in Source then stays, as something may be mounted there.
	OneFileSystem bool

	Hands    hands.Hands // copies the files of trees; nil: the job does
	Parallel int         // files at once; 0: as many as suit most destinations, 64
	Owner    bool        // keep owners and groups, as far as the caller may
	Verify   bool        // read every file back

	// DryRun has nothing changed: what would be is told by events of type "would". The record is not
	// used. The Summary counts what would be done.
	DryRun bool

	// Tag, of digits and the letters a to f, marks the temporaries of a job without a Record. Sweep
	// says that those which have it by now are of a run that was killed: they are removed first.
	Tag   string
	Sweep bool

	// Record is the directory of the job's record; nil: none. ID says what the job is: a
	// record with another ID is refused. Files that were copied without Owner are copied
	// again with it. With Verify the copies of earlier runs are compared, too.
	Record *os.Root
	ID     string
	// Locked is the record, if the caller has locked it (LockRecord), and closes it after Copy;
	// nil: Copy locks it.
	Locked *os.File
	// Parts is the directory that has what is known of large files that are copied in part, for a copy
	// without a Record, which has them itself; nil: none. Its temporaries have the Tag.
	Parts *os.Root
	// Large is the size in bytes above which the copy of a file goes on where an earlier run has ended, with a
	// Record or Parts; 0: DefaultLarge.
	Large uint64
	// Sync, if not nil, makes Dest what Source is: what is the same in both stays as it is.
	Sync *SyncOptions
	// RecordOptional says that the copy goes on if the record cannot be opened or written, which
	// is told.
	// The last files before a kill may be missing in it, and are copied again.
	RecordOptional bool
}

// There is the object that has the copy's name already. A zero Handle is nothing.
type There struct {
	Handle vfs.Handle
	Attr   vfs.Attr
}

// Summary is what a copy has done.
type Summary struct {
	Files       uint64 `json:"files"`
	Dirs        uint64 `json:"dirs"` // of a sync those that were made
	Symlinks    uint64 `json:"symlinks"`
	Hardlinks   uint64 `json:"hardlinks"` // further names of objects
	Nodes       uint64 `json:"nodes"`     // devices, pipes, sockets
	Bytes       uint64 `json:"bytes"`     // of the files
	Skipped     uint64 `json:"skipped"`   // files that an earlier run had done
	Unchanged   uint64 `json:"unchanged"` // objects that a sync, or a run that goes on, has found as they should be, and directories that were there, whatever came into them
	Deleted     uint64 `json:"deleted"`   // objects that the source does not have, directories too
	ToDelete    uint64 `json:"to_delete"` // objects that a sync had to delete, counted before with a bound on them; 0 without
	AttrsSet    uint64 `json:"attrs_set"` // of Skipped and Unchanged, those that got their owner, mode, time, list or extended attributes again
	Verified    uint64 `json:"verified"`
	Errors      uint64 `json:"errors"`        // items that failed
	Changed     uint64 `json:"changed"`       // of those, files that changed each time they were copied
	NoSpace     uint64 `json:"no_space"`      // items for which the destination had no space: failures, or what ended the job
	Vanished    uint64 `json:"vanished"`      // items that were gone when their turn came: no failures
	DirsGone    uint64 `json:"dirs_vanished"` // directories that were gone by their turn, or at their end
	DirsChanged uint64 `json:"dirs_changed"`  // directories that changed each time they were listed: what came into them last may be missing
	Grew        uint64 `json:"grew"`          // of Files, those that grew meanwhile and are kept as they were at first

	Mounts uint64 `json:"-"` // directories of other file systems, which are copied as empty ones

	Kept uint64 `json:"parts_kept"` // files that are copied in part, and whose temporaries are kept for the next run

	Left uint64 `json:"temporaries_left"` // temporaries that could not be removed when the job ended early, or may appear yet

	DirsClosed uint64 `json:"dirs_closed"` // directories of the destination that are not finished: they keep mode 0700 until they are

	OwnersLost uint64  `json:"owners_lost"` // items whose owner could not be kept
	SetIDsLost uint64  `json:"setids_lost"` // files whose set-id bits were therefore left out
	ModesLost  uint64  `json:"modes_lost"`  // items whose other permissions could not be kept
	TimesLost  uint64  `json:"times_lost"`  // items whose times could not be kept
	ACLsLost   uint64  `json:"acls_lost"`   // items with an access control list that could not be kept
	XattrsLost uint64  `json:"xattrs_lost"` // items with extended attributes, where the source reports them, that could not be kept
	HolesLost  uint64  `json:"holes_lost"`  // files with holes, which the destination cannot have: there are zeros, which take storage
	LinksSplit uint64  `json:"links_split"` // hard links that became objects of their own
	Seconds    float64 `json:"seconds"`
}

// ExitCode is the exit code of a command that got s and err from Copy.
func (s *Summary) ExitCode(err error) int { return exitCode(err, s.Errors, 0) }

// copyJob is a copy under way. It is the visitor of the walk.
type copyJob struct {
	crew
	o        *CopyOptions
	t        transfer.Options
	hands    hands.Hands
	syncer   vfs.Syncer // of the destination; nil if it needs none
	srcAttr  vfs.Attr
	target   vfs.Handle // the directory that the tree's root becomes
	targetID objectID
	root     vfs.Attr // of target

	destListed func() bool // whether the destination's directory has access control lists; waits for the answer

	links  linkTable
	kept   keptLinks
	ids    copyIDs
	record *record   // nil: none
	parts  *parts    // nil: none
	unkept sync.Once // the record could not be written

	forgotten  atomic.Uint64 // directories of the destination
	dirsClosed atomic.Int64  // of the destination: closed until they are finished

	unsettled sync.Map // of *dirState with files that are not in the record yet

	nodesMu sync.Mutex
	nodes   []vfs.Handle // links and nodes that have to be synced

	times  times         // of a sync
	sameAs atomic.Uint64 // objects that a sync has found as they should be

	failedBefore uint64        // items that had failed when the job began
	toDelete     atomic.Uint64 // names of the destination that the source lacks
	extras       extras        // those of them that have no other object in their way
	conflicts    atomic.Uint64 // of those, the ones that have other types in the source
	surveyed     atomic.Uint64 // objects that would be deleted, if that was asked for
	deleted      atomic.Uint64
	replacing    bool // what was in the way is deleted

	ownersLost, setIDsLost, modesLost, timesLost, aclsLost, xattrsLost, holesLost, linksSplit, attrsSet atomic.Uint64
}

// Copy copies a tree, or a single object. Items that fail are reported to
// o.Progress and counted in the Summary; the error is nil then. An error says
// that the job as a whole has ended early.
func Copy(ctx context.Context, o CopyOptions) (Summary, error) {
	if o.Progress == nil {
		o.Progress = progress.New(nil, o.Now)
	}
	before := o.Progress.Snapshot()
	j := &copyJob{o: &o, failedBefore: before.Counts[progress.Errors], crew: crew{outcomes: outcomes{progress: o.Progress}, more: o.More, filter: o.Filter, oneFS: o.OneFileSystem}}
	err := j.run(ctx)
	if cerr := j.forgive(j.record.close()); err == nil {
		err = cerr
	}
	sum := j.summary(&before)
	sum.Left, sum.Kept = j.left.tell(o.Progress), j.tellParts()
	return sum, err
}

func (j *copyJob) run(ctx context.Context) error {
	j.destListed = func() bool { return false }
	defer func() { j.destListed() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := j.prepare(ctx); err != nil {
		return err
	}
	switch {
	case j.srcAttr.Type != vfs.TypeDir && j.deletes():
		return fmt.Errorf("the source is no directory, beside which nothing is deleted: %w", vfs.ErrInval)
	case j.srcAttr.Type != vfs.TypeDir && j.dry():
		return j.rehearseOne(ctx)
	case j.srcAttr.Type != vfs.TypeDir:
		return j.single(ctx)
	case j.dry():
		return j.rehearse(ctx)
	}
	visit := func(ctx context.Context, o walk.Options) error {
		return delta.Tree(ctx, j.o.Source.FS, j.o.Source.Handle, j.o.Dest.FS, delta.Options{Walk: o, NoExtras: !j.deletes()}, j)
	}
	if err := j.tree(ctx, visit, j.secondWalk); err != nil {
		return errors.Join(err, j.settle(ctx))
	}
	j.clearParts(ctx)
	if err := j.deleteExtras(ctx); err != nil {
		return errors.Join(err, j.settle(ctx))
	}
	j.closeTotals()
	serr := j.syncDest(ctx)
	if err := j.destStill(ctx); err != nil {
		return err // it explains the other
	}
	return serr
}

// prepare looks at both ends.
func (j *copyJob) prepare(ctx context.Context) error {
	o := j.o
	if o.Name != "" {
		if err := vfs.CheckName(o.Name); err != nil {
			return fmt.Errorf("the copy's name: %w", err)
		}
	}
	e, err := j.lookAtEnds(ctx)
	if err != nil {
		return err
	}
	j.source = source{o.Source, j.srcAttr}
	atOnce := parallel(o.Parallel, copyParallel)
	j.syncer, _ = vfs.As[vfs.Syncer](o.Dest.FS)
	j.hands = handsOf(o.Hands)
	j.slots = make(chan struct{}, max(atOnce, j.hands.AtOnce()))
	j.t = transfer.Options{
		Chunk: e.chunk, Pool: o.Pool, Random: o.Random, Budget: transfer.NewBudget(max(maxChunks, atOnce)), Verify: o.Verify, Throttle: o.Throttle,
		// n may be negative: as an unsigned number it wraps, and so subtracts.
		Moved: func(n int64) { j.progress.Add(progress.Bytes, uint64(n)) },
	}
	if o.Owner {
		j.t.Owners = &transfer.Owners{}
	}
	if o.Tag != "" {
		j.t.Tag = o.Tag + "-"
	}
	if o.Sync != nil {
		if j.times, err = timesOf(ctx, o.Source, o.Dest); err != nil {
			return err
		}
	}
	if o.Record != nil && !j.dry() {
		if err := j.openRecord(ctx); err != nil {
			return err
		}
	}
	j.openParts()
	if err := j.refuseOntoItself(ctx, e); err != nil {
		return err
	}
	return j.refuseEmpty(ctx)
}

// openRecord opens the job's record. One that is optional may not be there.
func (j *copyJob) openRecord(ctx context.Context) error {
	r, err := openRecord(ctx, j.o.Record, j.o.Locked, j.o.ID)
	if err != nil && ctx.Err() == nil {
		return j.forgive(err)
	}
	if err != nil {
		return err
	}
	j.record, r.lazy = r, j.o.RecordOptional
	if r.resumed && r.version == 1 {
		j.progress.Report(progress.Event{Type: "note", Message: "the job's record is of an earlier version, without the file ids of the copies: " +
			"copies that have got each other's name only --verify finds"})
	}
	if n, why := r.index.Missing(); n > 0 {
		j.progress.Report(progress.Event{Type: "note", Message: fmt.Sprintf(
			"the record's index could not be completed, and up to %d files are copied again: %v", n, why)})
	}
	j.t.Tag = TempTag(j.o.ID)
	return nil
}

// single copies one object that is no directory.
func (j *copyJob) single(ctx context.Context) error {
	j.found(&j.srcAttr)
	j.closeTotals()
	e := vfs.Entry{Handle: j.o.Source.Handle, Attr: j.srcAttr}
	state, err := j.top(ctx)
	if err != nil {
		return err
	}
	if err := j.sweep(ctx, state.handle); err != nil {
		if j.o.Record != nil || ctx.Err() != nil {
			return err
		}
		// The directory may be one that takes files and is not listed.
		j.progress.Report(progress.Event{Type: "note", Message: "a copy that was killed may have left a temporary: " + err.Error()})
	}
	watched, end := j.watch(ctx, func() int { return 1 })
	there, err := j.thereOf(watched)
	if err != nil {
		return err
	}
	if err := errors.Join(end(j.item(watched, state, j.o.Name, &e, there)), ctx.Err()); err != nil {
		return err
	}
	j.clearParts(ctx)
	if err := j.syncDest(ctx); err != nil {
		return err
	}
	return j.flush(ctx, state, false)
}

// thereOf is what a sync of one object has to judge: what has its name. nil: nothing, or it is no sync.
func (j *copyJob) thereOf(ctx context.Context) (*vfs.Entry, error) {
	if j.o.Sync == nil {
		return nil, nil
	}
	o, ok, err := lookup(ctx, j.o.Dest.FS, j.o.Dest.Handle, j.o.Name)
	if err != nil || !ok {
		return nil, err
	}
	return &vfs.Entry{Name: []byte(j.o.Name), Handle: o.handle, Attr: o.attr}, nil
}

// syncDest makes the copy's own name stable, and the links and nodes that still wait.
func (j *copyJob) syncDest(ctx context.Context) error {
	if err := j.syncNodes(ctx); err != nil {
		return err
	}
	if j.syncer == nil || j.o.Name == "" {
		return nil
	}
	err := j.syncer.Sync(ctx, j.o.Dest.Handle)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("sync the destination: %w: the copy is there, but its name is not known to be safe on the disk, "+
			"as only a directory that may be read can be synced: make it readable, and run the same command again", err)
	case err != nil:
		return fmt.Errorf("sync the destination: %w", err)
	}
	return nil
}

// lost counts what could not be kept of an item, and names the first one of which lists or
// extended attributes are lost.
func (j *copyJob) lost(l transfer.Lost, path string) {
	for _, c := range [...]struct {
		lost  bool
		count *atomic.Uint64
		first string
	}{
		{l.Owner, &j.ownersLost, ""}, {l.SetID, &j.setIDsLost, ""}, {l.Mode, &j.modesLost, ""}, {l.Times, &j.timesLost, ""},
		{l.ACL, &j.aclsLost, firstACL}, {l.Xattr, &j.xattrsLost, firstXattr}, {l.Holes, &j.holesLost, ""},
	} {
		if c.lost && c.count.Add(1) == 1 && c.first != "" {
			j.progress.Report(progress.Event{Type: "note", Path: path, Message: c.first})
		}
	}
}

const (
	firstACL   = "its access control list could not be kept; nobody has more rights by its copy (further such items are counted, and not listed)"
	firstXattr = "its extended attributes could not all be kept (further such items are counted, and not listed)"
)

func (j *copyJob) summary(before *progress.Snapshot) Summary {
	after := j.progress.Snapshot()
	n := func(c progress.Counter) uint64 { return after.Counts[c] - before.Counts[c] }
	return Summary{
		Files: n(progress.Files), Dirs: n(progress.Dirs), Symlinks: n(progress.Symlinks),
		Hardlinks: n(progress.Hardlinks), Nodes: n(progress.Nodes), Bytes: n(progress.Bytes),
		Skipped: n(progress.Skipped) - j.sameAs.Load(), Unchanged: j.sameAs.Load(), Deleted: j.deleted.Load(), ToDelete: j.surveyed.Load(), AttrsSet: j.attrsSet.Load(), Verified: n(progress.Verified), Errors: n(progress.Errors),
		Changed: j.changed.Load(), NoSpace: j.noSpace.Load(), DirsClosed: uint64(max(j.dirsClosed.Load(), 0)), Vanished: n(progress.Vanished), DirsGone: j.dirs.count(), DirsChanged: j.dirsChanged.Load(), Grew: j.grew.Load(), Mounts: j.elsewhere.Load(),
		OwnersLost: j.ownersLost.Load(), SetIDsLost: j.setIDsLost.Load(), ModesLost: j.modesLost.Load(),
		TimesLost: j.timesLost.Load(), ACLsLost: j.aclsLost.Load(), XattrsLost: j.xattrsLost.Load(), HolesLost: j.holesLost.Load(), LinksSplit: j.linksSplit.Load(),
		Seconds: after.Time.Sub(before.Time).Seconds(),
	}
}
