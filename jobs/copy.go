package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// CopyOptions say how to copy. The zero CopyOptions are those of nfsbox cp -r.
type CopyOptions struct {
	Options
	// Verify reads every copied file back, and compares it with what was read; with a Record those of earlier
	// runs, too.
	Verify bool
	// NoOwner leaves owners and groups as the destination makes them.
	NoOwner bool
	// DryRun has nothing changed: events of type Would, and the summary, say what would be. No Record is used.
	DryRun bool
	// Record is a directory of this host, for this job alone, which is made if it is not there. Of files
	// that an earlier run has entered there none is copied again. Empty: there is none.
	Record string
}

// CopySummary is what a copy has done. Of items that are not Files, contents, names and times count alike.
type CopySummary struct {
	Files, Dirs, Symlinks uint64
	Hardlinks             uint64 // further names of objects
	Nodes                 uint64 // devices, pipes, sockets
	Bytes                 uint64 // of the files
	Skipped               uint64 // files that were the same already: recorded, or found so by Sync
	Verified              uint64 // files that were read back and compared
	Errors                uint64 // items that have failed: each is an Event
	Vanished              uint64 // items that were gone when their turn came: no failures
	Grew                  uint64 // of Files, those that grew meanwhile, and are copied as they were at first

	// Not preserved: items with an owner, set-id bits, another mode, times, an access control list or extended
	// attributes that the destination does not keep, holes that became zeros, and hard links that became files of their own.
	OwnersLost, SetIDsLost, ModesLost, TimesLost, ACLsLost, XattrsLost, HolesLost, LinksSplit uint64

	LeftOut   uint64 // entries that Rules left out, or as they are snapshots; directories with all below them as one
	Elsewhere uint64 // directories that OneFileSystem took for empty

	TemporariesLeft uint64 // temporaries that could not be removed when the job ended early
	Elapsed         time.Duration
}

// Copy copies what source names, with all that lies below it, so that dest becomes the copy. See the
// package for what places mean, and for the error. It returns when everything is stable, or undone.
func Copy(ctx context.Context, source, dest string, o CopyOptions) (CopySummary, error) {
	return copyTo(ctx, source, dest, &o, nil)
}

// SyncOptions say how to synchronise.
type SyncOptions struct {
	CopyOptions
	// Checksum has the contents compared of files that have the same size and time.
	Checksum bool
	// ACLs has access control lists and extended attributes compared of what is not copied.
	ACLs bool
}

// Sync makes dest what source, a directory, is: as Copy, but what is the same in both stays as it is. What
// only dest has stays as well: nothing is deleted.
func Sync(ctx context.Context, source, dest string, o SyncOptions) (CopySummary, error) {
	return copyTo(ctx, source, dest, &o.CopyOptions, &job.SyncOptions{Checksum: o.Checksum, ACLs: o.ACLs})
}

func copyTo(ctx context.Context, source, dest string, o *CopyOptions, sync *job.SyncOptions) (sum CopySummary, err error) {
	tracker, done := o.tracker(ctx)
	defer done()
	chosen, err := o.filter()
	if err != nil {
		return sum, err
	}
	call, reads := "Copy", (*place.Reading)(nil)
	if sync != nil {
		call = "Sync"
	}
	if !o.DryRun { // which leaves nothing anywhere
		reads = reading(tracker, call)
	}
	from, err := o.open(ctx, source, place.Options{Reading: reads})
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := o.open(ctx, dest, place.Options{Change: true})
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	what := job.CopyOptions{
		Pool: new(bufpool.Pool), Random: rand.Reader, Now: time.Now, Progress: tracker, Throttle: o.Rate.throttle(),
		Parallel: o.Parallel, Owner: !o.NoOwner, Verify: o.Verify, Above: to.Above, Sync: sync, OneFileSystem: o.OneFileSystem, Filter: chosen, DryRun: o.DryRun,
	}
	found, err := from.Resolve(ctx, false)
	if err != nil {
		return sum, reached(err)
	}
	what.Source, what.SourceDir, what.SourceName = job.Place{FS: from.FS, Handle: found.Handle}, found.Dir, found.Name
	if err := destine(ctx, to, &found.Attr, &what); err != nil {
		return sum, err
	}
	if o.Record != "" && !o.DryRun {
		record, rerr := openRecord(o.Record)
		if rerr != nil {
			return sum, rerr
		}
		defer func() { err = errors.Join(err, record.Close()) }()
		what.Record, what.ID = record, strings.Join([]string{"jobs", source, dest}, "\x00")
	}
	s, err := job.Copy(ctx, what)
	sum = summaryOf(&s)
	sum.LeftOut, _ = chosen.Left()
	sum.Elsewhere += from.Mounts()
	return sum, verdict(reached(err), s.Errors, 0)
}

// reading has prunes of other hosts keep a snapshot that a call of this package reads. Its notes are events.
func reading(t *progress.Tracker, call string) *place.Reading {
	return place.NewReading("jobs."+call, rand.Reader, func(kind, text string) { t.Report(progress.Event{Type: Note, Kind: kind, Message: text}) })
}

// open opens a place.
func (o *Options) open(ctx context.Context, text string, how place.Options) (*place.Place, error) {
	if o.Parallel < 0 || o.Parallel > job.MaxParallel {
		return nil, fmt.Errorf("%w: %d files at once, 0 to %d are possible", ErrPlace, o.Parallel, job.MaxParallel)
	}
	how.OneFileSystem, how.Dial = o.OneFileSystem, o.Dial
	p, err := place.Open(ctx, place.Meant(text), how)
	return p, reached(err)
}

// reached is err, as one of this package.
func reached(err error) error {
	if errors.Is(err, place.ErrUnreachable) || errors.Is(err, job.ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// destine settles where the copy of an object with the attributes src goes: to becomes it.
func destine(ctx context.Context, to *place.Place, src *vfs.Attr, o *job.CopyOptions) error {
	r, err := to.Resolve(ctx, false)
	if errors.Is(err, fs.ErrNotExist) {
		dir, name, err := to.Parent(ctx)
		o.Dest, o.Name = job.Place{FS: to.FS, Handle: dir}, name
		return reached(err)
	}
	isDir := src.Type == vfs.TypeDir
	switch {
	case err != nil:
		return reached(err)
	case r.Attr.Type == vfs.TypeSymlink:
		return fmt.Errorf("%s is a symbolic link: %w to copy to; name what it leads to", to.Text, ErrPlace)
	case r.Attr.Type == vfs.TypeDir && !isDir:
		return fmt.Errorf("%s is a directory, and the source a %v: %w to copy it to", to.Text, src.Type, ErrPlace)
	case r.Attr.Type == vfs.TypeDir:
		o.Dest, o.KeepDest = job.Place{FS: to.FS, Handle: r.Handle}, true
	default:
		o.Dest, o.Name = job.Place{FS: to.FS, Handle: r.Dir}, r.Name
	}
	return nil
}

// openRecord opens the directory of a record, and makes it.
func openRecord(dir string) (*os.Root, error) {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			return root, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrRecord, err)
}

// verdict is the error of a job that got err, with so many failures and differences.
func verdict(err error, failed, different uint64) error {
	switch {
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%w: %d items have failed", ErrIncomplete, failed)
	case different > 0:
		return fmt.Errorf("%w: %w: %d differences", ErrIncomplete, ErrDifferent, different)
	}
	return nil
}

func summaryOf(s *job.Summary) CopySummary {
	return CopySummary{
		Files: s.Files, Dirs: s.Dirs, Symlinks: s.Symlinks, Hardlinks: s.Hardlinks, Nodes: s.Nodes, Bytes: s.Bytes, Skipped: s.Skipped,
		Verified: s.Verified, Errors: s.Errors, Vanished: s.Vanished + s.DirsGone, Grew: s.Grew,
		OwnersLost: s.OwnersLost, SetIDsLost: s.SetIDsLost, ModesLost: s.ModesLost, TimesLost: s.TimesLost, ACLsLost: s.ACLsLost,
		XattrsLost: s.XattrsLost, HolesLost: s.HolesLost, LinksSplit: s.LinksSplit, TemporariesLeft: s.Left, Elsewhere: s.Mounts, Elapsed: seconds(s.Seconds),
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
