package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
)

// Options say what is backed up, and where to.
type Options struct {
	FS    vfs.FS
	Root  vfs.Handle // a directory of FS
	Store object.Store
	// Base is an earlier snapshot of the tree, in Store; nil: all is read.
	Base *snapshot.Snapshot
	// Meta names the snapshot. Run sets Time, Complete, TimeDelta and Counts.
	Meta snapshot.Meta

	Now      func() time.Time
	Progress *progress.Tracker // nil: no reports
	Parallel int               // files at once; 0: DefaultParallel
	// OneFileSystem leaves out what is in directories that are on another file system than Root.
	OneFileSystem bool
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
	Why       map[string]uint64 `json:"why"`        // why they were: "new", "size", "mtime", "ctime", "fileid", "recent", and of the earlier one "changed", "damaged"
	Stored    int64             `json:"stored"`     // bytes that the store has got
	Had       int64             `json:"had"`        // bytes that it was given, and had

	Changed  uint64 `json:"changed"`  // files that changed each time that they were read
	Vanished uint64 `json:"vanished"` // items that vanished meanwhile
	Errors   uint64 `json:"errors"`
}

// run is a backup under way. It is the visitor of the join.
type run struct {
	o     *Options
	w     *snapshot.Writer
	acl   vfs.ACLer   // nil: the tree has none
	xattr vfs.Xattrer // likewise
	slots chan struct{}
	since time.Time // times of Base that are later say nothing
	root  *snapshot.Entry

	errors, vanished, changed     atomic.Uint64
	files, dirs, symlinks, nodes  atomic.Uint64
	bytes, filesRead, bytesOfRead atomic.Uint64

	mu    sync.Mutex
	why   map[string]uint64
	links map[linked]*contents
}

// Run backs a tree up. After an error there is no snapshot: the store has content that a later run
// finds there. Failed items are no error: see Summary.Errors.
func Run(ctx context.Context, o Options) (sum Summary, err error) {
	if err := snapshot.CheckName(o.Meta.Name); err != nil {
		return sum, err
	}
	r := &run{o: &o, why: make(map[string]uint64), links: make(map[linked]*contents)}
	r.acl, _ = vfs.As[vfs.ACLer](o.FS)
	r.xattr, _ = vfs.As[vfs.Xattrer](o.FS)
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	r.slots = make(chan struct{}, min(o.Parallel, MaxParallel))
	if r.w, err = snapshot.NewWriter(o.Store); err != nil {
		return sum, err
	}
	o.Meta.Time = o.Now()
	info, err := o.FS.Info(ctx, o.Root, vfs.InfoLimits)
	if err != nil {
		return sum, fmt.Errorf("limits of the source: %w", err)
	}
	o.Meta.TimeDelta = info.TimeDelta
	if o.Base != nil {
		ref := o.Base.Ref()
		sum.Base = ref.Text()
		r.since = ref.Time.Add(-max(info.TimeDelta, ref.TimeDelta, minDelta))
	}
	id, err := r.take(ctx)
	r.fill(&sum)
	if err == nil {
		ref := snapshot.Ref{ID: id, Meta: o.Meta}
		sum.Snapshot, sum.Complete = ref.Text(), o.Meta.Complete
	}
	return sum, err
}

// take walks the tree, and finishes the snapshot.
func (r *run) take(ctx context.Context) (id string, err error) {
	var right vfs.FS
	if r.o.Base != nil {
		right = r.o.Base.FS()
	}
	do := delta.Options{Walk: walk.Options{OneFileSystem: r.o.OneFileSystem}, NoExtras: true}
	if err := delta.Tree(ctx, r.o.FS, r.o.Root, right, do, r); err != nil {
		return "", err
	}
	if r.root == nil {
		return "", errors.New("the directory could not be listed")
	}
	m := &r.o.Meta
	m.Complete = r.errors.Load() == 0
	m.Counts = map[string]uint64{
		"files": r.files.Load(), "dirs": r.dirs.Load(), "symlinks": r.symlinks.Load(), "nodes": r.nodes.Load(),
		"bytes": r.bytes.Load(), "errors": r.errors.Load(), "changed": r.changed.Load(), "vanished": r.vanished.Load(),
	}
	return r.w.Finish(ctx, *m, r.root)
}

func (r *run) fill(s *Summary) {
	s.Files, s.Dirs, s.Symlinks, s.Nodes = r.files.Load(), r.dirs.Load(), r.symlinks.Load(), r.nodes.Load()
	s.Bytes, s.Read, s.ReadBytes = r.bytes.Load(), r.filesRead.Load(), r.bytesOfRead.Load()
	s.Changed, s.Vanished, s.Errors = r.changed.Load(), r.vanished.Load(), r.errors.Load()
	s.Stored, s.Had = r.w.Written()
	s.Why = r.why
}

// because counts why a file is read.
func (r *run) because(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why[why]++
}

// failed reports an item, and returns nil, unless the context has ended.
func (r *run) failed(ctx context.Context, path string, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if errors.Is(err, walk.ErrVanished) || errors.Is(err, errVanished) {
		r.vanished.Add(1)
		r.o.Progress.Report(progress.Event{Type: "note", Kind: "vanished", Path: path, Message: "it vanished before its turn came"})
		return nil
	}
	r.errors.Add(1)
	r.o.Progress.Report(progress.Event{Type: "error", Path: path, Message: err.Error(), Err: err})
	return nil
}

// folder is a directory under way.
type folder struct {
	path string // in the snapshot
	w    *snapshot.DirWriter
	e    *snapshot.Entry
}

// longPath stands for all paths that snapshots leave out: no path of a deep tree is kept.
var longPath = string(make([]byte, vfs.MaxPath+1))

func folderOf(d *delta.Dir) *folder { return d.Data.(*folder) }

// Enter implements delta.Visitor.
func (r *run) Enter(ctx context.Context, d *delta.Dir, there *vfs.Entry) (right vfs.Handle, err error) {
	path := ""
	if d.Parent != nil {
		path = d.Name
		if up := folderOf(d.Parent).path; up != "" {
			path = up + "/" + d.Name
		}
		if len(path) > vfs.MaxPath {
			path = longPath
		}
	}
	f := &folder{path: path, e: &snapshot.Entry{Name: d.Name, Attr: d.Attr}}
	d.Data = f
	if !d.Attr.Has(vfs.MaskV3) || d.Parent == nil {
		f.e.Attr, err = r.o.FS.GetAttr(ctx, d.Handle, vfs.MaskV3)
		if err != nil && d.Parent != nil {
			return right, cmp.Or(r.failed(ctx, d.Path(""), gone(err)), walk.ErrSkipDir)
		}
		if err != nil {
			return right, fmt.Errorf("attributes of the directory: %w", err)
		}
	}
	if err := r.extra(ctx, d.Handle, f.e); err != nil {
		if err := r.failed(ctx, d.Path(""), gone(err)); err != nil {
			return right, err
		}
	}
	f.w = r.w.Dir(path)
	switch {
	case r.o.Base == nil:
	case d.Parent == nil:
		right, _, err = r.o.Base.FS().Root(ctx)
	case there != nil && there.Attr.Type == vfs.TypeDir:
		right = there.Handle
	}
	return right, err
}

// Entry implements delta.Visitor.
func (r *run) Entry(ctx context.Context, d *delta.Dir, in, there *vfs.Entry) error {
	e := &snapshot.Entry{Name: string(in.Name), Attr: in.Attr}
	h := in.Handle
	if !e.Attr.Has(vfs.MaskV3) {
		a, err := r.o.FS.GetAttr(ctx, h, vfs.MaskV3)
		if err != nil {
			return r.failed(ctx, d.Path(e.Name), gone(err))
		}
		e.Attr = a
	}
	why := r.judge(&e.Attr, there)
	if why == "" {
		old, err := r.o.Base.Entry(ctx, there.Handle)
		switch {
		case err != nil && !errors.Is(err, snapshot.ErrDamaged):
			return err
		case err != nil:
			why = "damaged"
		case old.Changed:
			why = "changed"
		default:
			return r.reuse(ctx, d, e, old)
		}
	}
	if e.Attr.Type != vfs.TypeReg {
		return r.other(ctx, d, h, e)
	}
	r.because(why)
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	d.Hold()
	go func() {
		defer d.Release()
		defer func() { <-r.slots }()
		if err := r.file(ctx, d, h, e); err != nil {
			d.Abort(err)
		}
	}()
	return nil
}

// judge says why an object cannot be taken from the earlier snapshot; "" if it can.
func (r *run) judge(a *vfs.Attr, there *vfs.Entry) string {
	if there == nil || there.Attr.Type != a.Type {
		return "new"
	}
	b := &there.Attr
	switch {
	case a.Size != b.Size || a.Rdev != b.Rdev:
		return "size"
	case !a.Mtime.Equal(b.Mtime):
		return "mtime"
	case !a.Ctime.Equal(b.Ctime):
		return "ctime"
	case a.FileID != b.FileID:
		return "fileid"
	case a.Mtime.After(r.since) || a.Ctime.After(r.since):
		return "recent"
	}
	return ""
}

// reuse takes an object as the earlier snapshot has it.
func (r *run) reuse(ctx context.Context, d *delta.Dir, e, old *snapshot.Entry) error {
	if err := r.w.Reuse(ctx, r.o.Base, old); err != nil {
		return err
	}
	e.Target, e.Content, e.Extra = old.Target, old.Content, old.Extra
	return r.add(ctx, d, e)
}

// add adds an entry that is done.
func (r *run) add(ctx context.Context, d *delta.Dir, e *snapshot.Entry) error {
	if err := folderOf(d).w.Add(ctx, e); errors.Is(err, snapshot.ErrTooLong) {
		return r.failed(ctx, d.Path(e.Name), err)
	} else if err != nil {
		return err
	}
	switch e.Attr.Type {
	case vfs.TypeReg:
		r.files.Add(1)
		r.bytes.Add(e.Attr.Size)
		r.o.Progress.Add(progress.Files, 1)
		r.o.Progress.Add(progress.Bytes, e.Attr.Size)
	case vfs.TypeDir:
		r.dirs.Add(1)
		r.o.Progress.Add(progress.Dirs, 1)
	case vfs.TypeSymlink:
		r.symlinks.Add(1)
	default:
		r.nodes.Add(1)
	}
	return nil
}

// other adds what is neither a file nor a directory.
func (r *run) other(ctx context.Context, d *delta.Dir, h vfs.Handle, e *snapshot.Entry) (err error) {
	if e.Attr.Type == vfs.TypeSymlink {
		if e.Target, _, err = r.o.FS.Readlink(ctx, h); err != nil {
			return r.failed(ctx, d.Path(e.Name), gone(err))
		}
	} else if err := r.lists(ctx, h, e); err != nil {
		return r.failed(ctx, d.Path(e.Name), gone(err))
	}
	return r.add(ctx, d, e)
}

// Extra implements delta.Visitor.
func (r *run) Extra(context.Context, *delta.Dir, *vfs.Entry) error { return nil }

// Fault implements delta.Visitor.
func (r *run) Fault(ctx context.Context, d *delta.Dir, name string, err error) error {
	return r.failed(ctx, d.Path(name), err)
}

// FaultRight implements delta.Visitor. The earlier snapshot is damaged: what it has of the directory cannot be
// used, and the rest of it would not be met. That is an error, which another Base, or none, avoids.
func (r *run) FaultRight(_ context.Context, d *delta.Dir, name string, err error) error {
	ref := r.o.Base.Ref()
	return fmt.Errorf("%s in the earlier snapshot %s: %w", d.Path(name), ref.Text(), err)
}

// Leave implements delta.Visitor.
func (r *run) Leave(ctx context.Context, d *delta.Dir, _ error) error {
	f := folderOf(d)
	if err := f.w.Close(ctx, f.e); err != nil {
		return err
	}
	if d.Parent != nil {
		return r.add(ctx, d.Parent, f.e)
	}
	r.dirs.Add(1)
	r.root = f.e
	return nil
}
