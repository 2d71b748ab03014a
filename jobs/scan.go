package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/scan"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// ScanOptions say how to scan. The zero ScanOptions will do.
type ScanOptions struct {
	// Options: Parallel is how many directories are listed at once, up to 256, and Rate is without effect.
	Options
	// Top is how many rows the lists of the largest have, up to 1000; 0: 20.
	Top int
	// DirsAt has the table "directories" sum up each directory that lies so many levels below the place; 0: there
	// is none.
	DirsAt int
}

// ScanSummary is what a scan has counted. An object with several names counts once.
type ScanSummary struct {
	Entries       uint64 // names of all kinds, and the place
	Files, Dirs   uint64
	Symlinks      uint64
	Nodes         uint64 // devices, pipes, sockets
	Hardlinks     uint64 // further names of objects that are counted
	HardlinksOver uint64 // of 1,048,576 objects and more with several names: names that count, and may be further ones
	Bytes         uint64 // of files, as long as they are
	Used          uint64 // bytes on the disk, of all
	Sparse        uint64 // files with less on the disk than they are long, by 4 KiB or more
	SparseBytes   uint64 // by how much
	CaseUnchecked uint64 // directories with more names than could be compared
	Errors        uint64 // what could not be looked at: each is an Event, and all numbers are at least so much
	Vanished      uint64 // items that were gone when their turn came: no failures
	LeftOut       uint64 // entries that Rules left out, or as they are snapshots; directories with all below them as one
	Elsewhere     uint64 // directories that OneFileSystem took for empty
	Elapsed       time.Duration

	// Tables are histograms of kinds, sizes, ages, depths and the like, owners, and lists of the largest. Names that
	// this version knows are those of nfsbox scan --json.
	Tables []ScanTable
}

// ScanTable is a table of a scan.
type ScanTable struct {
	Name  string // for programs, such as "size"
	Title string // for people
	Note  string // what there is to know of the rows; "" is nothing
	// CountOf and BytesOf say what the rows' Count and Bytes are, for people, such as "files"; "": they have none.
	CountOf, BytesOf string
	// Histogram says that the rows are steps: all are there, in their order.
	Histogram bool
	Rows      []ScanRow
}

// ScanRow is a row. One with a Label and a Path is an example of the row before, and has no numbers.
type ScanRow struct {
	Label string // what it is about; "" if that is Path
	Path  string // below the place, "." for that; of a path longer than 4096 bytes the end
	Count uint64
	Bytes uint64
	Time  time.Time // of last change, UTC; zero: the table has none
}

// Table finds a table by its name; false if there is none.
func (s *ScanSummary) Table(name string) (ScanTable, bool) {
	for _, t := range s.Tables {
		if t.Name == name {
			return t, true
		}
	}
	return ScanTable{}, false
}

// Scan counts what lies in tree, a directory or another object. Nothing is changed, and no file is read. Of Counters, Files
// is how many names were counted by then. The error Is ErrIncomplete if something could not be looked at.
func Scan(ctx context.Context, tree string, o ScanOptions) (sum ScanSummary, err error) {
	tracker, done := o.tracker(ctx)
	defer done()
	began := time.Now()
	if o.Parallel > walk.MaxParallel || o.DirsAt < 0 {
		return sum, fmt.Errorf("%w: at most %d directories at once, and DirsAt from 0", ErrPlace, walk.MaxParallel)
	}
	chosen, err := o.filter()
	if err != nil {
		return sum, err
	}
	s := &scanning{o: &o, tracker: tracker, chosen: chosen}
	if s.scan, err = scan.New(scan.Options{Now: began, Top: o.Top, Depth: o.depth(), Progress: s.counted}); err != nil {
		return sum, fmt.Errorf("%w: %w", ErrPlace, err)
	}
	from, err := o.open(ctx, tree, place.Options{})
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	err = s.tree(ctx, from)
	tracker.CloseTotals()
	sum = s.summary()
	sum.Elsewhere += from.Mounts()
	sum.Elapsed = time.Since(began)
	return sum, verdict(reached(err), sum.Errors, 0)
}

// depth is what package scan takes for DirsAt.
func (o *ScanOptions) depth() int {
	if o.DirsAt == 0 {
		return -1
	}
	return o.DirsAt
}

// scanning is a scan under way.
type scanning struct {
	o         *ScanOptions
	scan      *scan.Scan
	tracker   *progress.Tracker
	chosen    *filter.Filter
	elsewhere atomic.Uint64
}

// counted is told what was counted since the last call.
func (s *scanning) counted(entries, bytes uint64) {
	for c, n := range map[progress.Counter]uint64{
		progress.Files: entries, progress.FoundItems: entries, progress.Bytes: bytes, progress.FoundBytes: bytes,
	} {
		s.tracker.Add(c, n)
	}
}

// tree counts what a place names.
func (s *scanning) tree(ctx context.Context, from *place.Place) error {
	r, err := from.Resolve(ctx, false)
	if err != nil {
		return err
	}
	if r.Attr.Type != vfs.TypeDir {
		s.scan.Single([]byte(from.Base()), &r.Attr, ".")
		return nil
	}
	t := s.scan.Tree()
	t.Spell = func(d *walk.Dir, name []byte) string { return d.Path(string(name)) }
	t.Failed = func(d *walk.Dir, name string, err error) {
		s.tracker.Add(progress.Errors, 1)
		s.tracker.Report(progress.Event{Type: Failed, Path: d.Path(name), Message: fault.Text(err), Err: err})
	}
	return walk.Tree(ctx, from.FS, r.Handle, walk.Options{
		Parallel: s.o.Parallel, Descend: t.Descend, Choose: s.chosen.Choose, OneFileSystem: s.o.OneFileSystem,
		LeftOut:   func(_ *walk.Dir, e *vfs.Entry) { s.chosen.LeftOut(e) },
		Elsewhere: func(*walk.Dir) { s.elsewhere.Add(1) },
	}, t)
}

// summary adds up what was counted.
func (s *scanning) summary() ScanSummary {
	r := s.scan.Report()
	sum := ScanSummary{
		Entries: r.Entries, Files: r.Files, Dirs: r.Dirs, Symlinks: r.Symlinks, Nodes: r.Nodes, Hardlinks: r.Hardlinks, HardlinksOver: r.Over,
		Bytes: r.Bytes, Used: r.Used, Sparse: r.Sparse, SparseBytes: r.SparseBy, CaseUnchecked: r.CaseUnsee, Vanished: r.Vanished,
		Errors: s.tracker.Get(progress.Errors), Elsewhere: s.elsewhere.Load(),
	}
	sum.LeftOut, _ = s.chosen.Left()
	for i := range r.Tables {
		t := &r.Tables[i]
		x := ScanTable{Name: t.Name, Title: t.Title, Note: t.Note, CountOf: t.Count, BytesOf: t.Bytes, Histogram: t.Chart}
		for _, row := range t.Rows {
			x.Rows = append(x.Rows, ScanRow{row.Label, row.Path, row.Count, row.Bytes, row.Time})
		}
		sum.Tables = append(sum.Tables, x)
	}
	return sum
}
