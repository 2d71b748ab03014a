package backup

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/delta"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// DefaultParallel is how many files are read at once if Options do not say. Each may take 8 MiB.
	DefaultParallel = 8
	// MaxParallel is the most that Options can ask for.
	MaxParallel = 64
	// minDelta is how near to an earlier reading a time may be and say nothing, at least: servers keep times
	// by a clock that ticks each 10 ms or more often.
	minDelta = 10 * time.Millisecond
	// maxLinked bounds the objects with several names whose content is remembered, each until all of its names
	// were met. Further ones are read under each name; the store has their bytes once.
	maxLinked = 1 << 16
	// grace is how long what is being stored may go on when the context has ended, so that the next backup
	// goes on behind it. Then it is given up.
	grace = 20 * time.Second
	// lastNote bounds how long a backup that has failed tries to note what it has done. Then the next one goes on from an earlier note.
	lastNote = time.Minute
)

// Options say what is backed up, and where to.
type Options struct {
	FS    vfs.FS
	Root  vfs.Handle // a directory of FS
	Store object.Store
	// Base is an earlier snapshot of the tree, in Store; nil: all is read. [Latest] finds it.
	Base *snapshot.Snapshot
	// Partial is what a backup that was stopped has left to go on from; nil: nothing. [Partial] finds it.
	Partial *snapshot.Snapshot
	// Meta names the snapshot. Run sets Time, Complete, TimeDelta, Looked and Counts.
	Meta snapshot.Meta

	Now      func() time.Time
	Progress *progress.Tracker // nil: no reports
	Parallel int               // files at once; 0: DefaultParallel
	Each     bool              // report each file that was read, as an event of type "done"

	// Filter says what of the tree is taken, and is told what is left out; nil: all.
	Filter   *filter.Filter
	Throttle *throttle.Throttle // bounds the bytes that are read, and may change meanwhile; nil: nothing does
	// OneFileSystem leaves out what is in directories that are on another file system than Root.
	OneFileSystem bool
	// Leave is the path below Root of a directory that is left out, as the store itself; "": none is.
	Leave string
	// StoreDir are attributes of the directory that Store is in; without a file id: it is in none. A directory of the tree that has that
	// id is left out if it is the store, by whichever way each of the two was reached.
	StoreDir vfs.Attr
	// Mark is what a key of Store begins with, and of no other store; "": nothing is known. [Leased] sets it.
	Mark string
	// FromEmpty allows a snapshot with nothing in it where an earlier one has something; else that is [ErrEmpty].
	FromEmpty bool
	// Change says which differences from Base have a file read; 0: all.
	Change Change
	// Privileged says that FS shows what it shows root alone.
	Privileged bool
	// Plain has files stored as they are, and not packed by zstd.
	Plain bool
	// Verify reads back all that the snapshot needs, also of files that were not read. An object of the store that is missing or has
	// other bytes is stored again, if the tree still has what was in it.
	Verify bool
	// DryRun reads no file, and stores nothing: what would be read is told by events of type "would", whose kind is
	// why. Store may be nil, and Base with it.
	DryRun bool
	// Prove, if not nil, is called before anything is published, and behind it: an error ends the backup, and what was published is
	// taken back.
	Prove func(ctx context.Context) error
	// Begun, if not nil, is called by [Leased] when it has the lease, and has found what the backup is on top of; each time that it begins.
	Begun func()
}

// Summary is what a backup has done.
type Summary struct {
	Snapshot string `json:"snapshot"` // as NAME@ID; empty if there is none
	Complete bool   `json:"complete"`
	Base     string `json:"base,omitempty"`

	Files    uint64 `json:"files"`
	Dirs     uint64 `json:"dirs"`
	Symlinks uint64 `json:"symlinks"`
	Nodes    uint64 `json:"nodes"`
	Bytes    uint64 `json:"bytes"` // of all files

	Read      uint64            `json:"read"`       // files that were read
	ReadBytes uint64            `json:"read_bytes"` // bytes of them
	Why       map[string]uint64 `json:"why"`        // why they were: "new", "size", "mtime", "ctime", "fileid", "recent"; of the earlier one "changed", "damaged", "links"
	Stored    int64             `json:"stored"`     // bytes that the store has got
	Had       int64             `json:"had"`        // bytes that it was given, and had

	Repacked      uint64 `json:"repacked"`       // files that were copied from a pack of the store to another one, of which more is needed
	RepackedBytes uint64 `json:"repacked_bytes"` // of them, as they are stored

	Resumed     uint64 `json:"resumed"`      // files that were not read, as a backup that was stopped had stored them
	Partial     bool   `json:"partial"`      // there is something to go on from, for the next backup of the name
	Changed     uint64 `json:"changed"`      // files that changed each time that they were read
	Vanished    uint64 `json:"vanished"`     // items that vanished meanwhile
	DirsChanged uint64 `json:"dirs_changed"` // directories that changed each time that they were listed: what came into them last may be missing
	Damaged     uint64 `json:"damaged"`      // objects of earlier snapshots that could not be used
	Mended      uint64 `json:"mended"`       // objects of the store that were missing or damaged, and were stored again
	Errors      uint64 `json:"errors"`

	Verified      uint64 `json:"verified"`       // objects of the store that were read back, and are as they were stored
	VerifiedBytes uint64 `json:"verified_bytes"` // of them
	Differences   uint64 `json:"differences"`    // files and other objects of the tree that lack something in the store

	Again uint64 `json:"again"` // times that the backup began again, as it lost its lease: all other numbers are of the last time

	Mounts uint64 `json:"-"` // directories of other file systems, of which the contents are left out
}

// run is a backup under way. It is the visitor of the join.
type run struct {
	o     *Options
	w     *snapshot.Writer // nil: a dry run
	sight sight
	was   *earlier // nil: nothing
	slots chan struct{}
	root  *snapshot.Entry
	proof *proof // nil: nothing is read back

	repack *repack // nil: nothing is packed anew

	store  context.Context // of calls to the store: it lasts a while longer than the run's
	flying sync.WaitGroup  // what works at files

	errors, vanished, changed     atomic.Uint64
	mounts, resumed, dirsChanged  atomic.Uint64
	files, dirs, symlinks, nodes  atomic.Uint64
	bytes, filesRead, bytesOfRead atomic.Uint64

	mu      sync.Mutex
	why     map[string]uint64
	links   map[linked]*contents
	waiting waiting
	mets    mets
}

// Run backs a tree up. After an error there is no snapshot: the store has content that a later run
// finds there. Failed items are no error: see Summary.Errors.
func Run(ctx context.Context, o Options) (sum Summary, err error) {
	if err := snapshot.CheckName(o.Meta.Name); err != nil {
		return sum, err
	}
	r := &run{o: &o, why: make(map[string]uint64), links: make(map[linked]*contents), mets: mets{seed: maphash.MakeSeed()}}
	if o.Change == 0 {
		o.Change = All
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	r.slots = make(chan struct{}, min(o.Parallel, MaxParallel))
	if !o.DryRun {
		if r.w, err = snapshot.NewWriter(o.Store); err != nil {
			return sum, err
		}
		if o.Prove != nil {
			r.w.Prove(o.Prove)
		}
		if o.Plain {
			r.w.Plain()
		}
		if o.Verify {
			r.readBack()
		}
	}
	if r.w != nil {
		if err := r.w.After(ctx, o.Meta.Name); err != nil {
			return sum, fmt.Errorf("the snapshots of %s: %w", o.Meta.Name, err)
		}
	}
	o.Meta.Time = o.Now()
	info, err := o.FS.Info(ctx, o.Root, vfs.InfoLimits)
	if err != nil {
		return sum, fmt.Errorf("limits of the source: %w", err)
	}
	o.Meta.TimeDelta = info.TimeDelta
	r.sight.begin(&o)
	if r.was = r.earlier(info.TimeDelta); o.Base != nil {
		ref := o.Base.Ref()
		sum.Base = ref.Text()
	}
	if o.Base != nil {
		r.repack = planRepack(o.Base.PackUses(), 0)
	}
	lasting, stop := outlast(ctx, grace)
	defer stop()
	r.store = lasting
	id, err := r.take(ctx)
	if !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrItself) { // what an earlier one has left stays
		sum.Partial = r.leave(err)
	}
	r.fill(&sum)
	if err == nil && !o.DryRun {
		ref := snapshot.Ref{ID: id, Meta: o.Meta}
		sum.Snapshot, sum.Complete = ref.Text(), o.Meta.Complete
		if o.Verify {
			err = r.verify(ctx, ref, &sum)
		}
		if snapshot.Later(id, o.Meta.Time) {
			r.note("clock", "", "the clock says an earlier time than that of the snapshot before: the new one has a later id, so that it is the newest")
		}
	}
	return sum, err
}

// take walks the tree, and finishes the snapshot.
func (r *run) take(ctx context.Context) (id string, err error) {
	var right vfs.FS
	if r.was != nil {
		right = r.was
	}
	do := delta.Options{NoExtras: true, Walk: walk.Options{
		OneFileSystem: r.o.OneFileSystem, Elsewhere: func(*walk.Dir) { r.mounts.Add(1) }, Listed: func() { r.listed(ctx) },
		Choose: r.o.Filter.Choose, LeftOut: r.leftOut,
	}, Again: r.lookAgain, Descend: r.descend}
	if r.o.Filter == nil {
		do.Walk.Choose, do.Walk.LeftOut = nil, nil
	}
	err = delta.Tree(ctx, r.o.FS, r.o.Root, right, do, r)
	r.flying.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", err
	}
	if r.root == nil {
		return "", errors.New("the directory could not be listed")
	}
	m := &r.o.Meta
	m.Looked = r.sight.looked()
	r.missing()
	if err := r.refuseEmpty(ctx); err != nil {
		return "", err
	}
	m.Complete = r.errors.Load() == 0
	m.Counts = map[string]uint64{
		"files": r.files.Load(), "dirs": r.dirs.Load(), "symlinks": r.symlinks.Load(), "nodes": r.nodes.Load(),
		"bytes": r.bytes.Load(), "errors": r.errors.Load(), "changed": r.changed.Load(), "vanished": r.vanished.Load(),
		"dirs_changed": r.dirsChanged.Load(),
	}
	if r.o.DryRun {
		return "", nil
	}
	return r.w.Finish(r.store, *m, r.root)
}

// outlast is a context that goes on for a while after ctx has ended.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(lasting, func() { timer.Stop() })
	})
	return lasting, func() {
		stop()
		cancel()
	}
}

// checkpoint notes what was done so far, if enough was.
func (r *run) checkpoint() error {
	if !r.w.Due() {
		return nil
	}
	err := r.w.Checkpoint(r.store, r.meta())
	if errors.Is(err, snapshot.ErrTooLong) {
		return nil // a directory is too large for it; the snapshot itself will say so
	}
	return err
}

// leave has the next backup go on from what there is, unless this one is done; then there is nothing to go on from. An
// incomplete one counts as not done: it is no base, and what it has read is not to be read again.
func (r *run) leave(err error) (partial bool) {
	if r.w == nil {
		return false
	}
	if err == nil && r.o.Meta.Complete {
		if err := snapshot.DropPartial(r.store, r.o.Store, r.o.Meta.Name); err != nil {
			r.note("partial", "", fmt.Sprintf("it stays, and the next backup passes it over: %v", err))
		}
		return false
	}
	ctx := r.store
	if err != nil { // the store may be what does not answer any more
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, lastNote)
		defer stop()
	}
	if perr := r.w.Checkpoint(ctx, r.meta()); perr != nil {
		r.note("partial", "", fmt.Sprintf("the next backup goes on from an earlier moment, as what was done since could not be noted: %v", perr))
		return false
	}
	return true
}

// meta is what a checkpoint says of itself.
func (r *run) meta() snapshot.Meta {
	m := r.o.Meta
	m.Complete, m.Counts, m.Looked = false, nil, r.sight.looked()
	return m
}

func (r *run) fill(s *Summary) {
	s.Files, s.Dirs, s.Symlinks, s.Nodes = r.files.Load(), r.dirs.Load(), r.symlinks.Load(), r.nodes.Load()
	s.Bytes, s.Read, s.ReadBytes = r.bytes.Load(), r.filesRead.Load(), r.bytesOfRead.Load()
	s.Changed, s.Vanished, s.Errors = r.changed.Load(), r.vanished.Load(), r.errors.Load()
	if r.w != nil {
		s.Stored, s.Had = r.w.Written()
		s.Mended = uint64(r.w.Mended())
	}
	if r.was != nil {
		s.Damaged = r.was.damaged.Load()
	}
	if r.repack != nil {
		s.Repacked, s.RepackedBytes = r.repack.files.Load(), r.repack.bytes.Load()
	}
	s.DirsChanged = r.dirsChanged.Load()
	s.Resumed = r.resumed.Load()
	s.Why, s.Mounts = r.why, r.mounts.Load()
}

// errNotListed is about a path of the filter's list that was not met.
var errNotListed = fmt.Errorf("--files-from lists it, and it was not found: %w", vfs.ErrNoEnt)

// missing reports what the filter's list has, and the tree has not.
func (r *run) missing() {
	for path := range r.o.Filter.Missing() {
		r.errors.Add(1)
		r.o.Progress.Add(progress.Errors, 1)
		r.o.Progress.Add(progress.MoreErrors, 1)
		r.o.Progress.Report(progress.Event{Type: "error", Path: path, Message: fault.Text(errNotListed), Err: errNotListed})
	}
}

// because counts why a file is read.
func (r *run) because(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why[why]++
}

func (r *run) note(kind, path, message string) {
	r.o.Progress.Report(progress.Event{Type: "note", Kind: kind, Path: path, Message: message})
}

// failed reports an item, and returns nil, unless the context has ended.
func (r *run) failed(ctx context.Context, path string, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if errors.Is(err, walk.ErrVanished) || errors.Is(err, errVanished) {
		r.vanished.Add(1)
		r.o.Progress.Add(progress.Vanished, 1)
		r.note("vanished", path, "it vanished before its turn came")
		return nil
	}
	r.errors.Add(1)
	r.o.Progress.Add(progress.Errors, 1)
	r.o.Progress.Report(progress.Event{Type: "error", Path: path, Message: fault.Text(err), Err: err})
	return nil
}
