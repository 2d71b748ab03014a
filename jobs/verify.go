package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
)

// VerifyOptions say what to compare.
type VerifyOptions struct {
	Options
	Owner bool // owners and groups as well
	ACLs  bool // access control lists and extended attributes as well, as far as the source can be asked for them
	Meta  bool // no file is read: of contents sizes and times stand for them
}

// VerifySummary is what a comparison has found.
type VerifySummary struct {
	Files, Dirs, Symlinks uint64 // that were compared
	Hardlinks             uint64 // further names of objects
	Nodes                 uint64 // devices, pipes, sockets
	Bytes                 uint64 // of the files
	Differences           uint64 // of all kinds: each is an Event
	Missing               uint64 // of Differences, those that only the source has
	Extra                 uint64 // of Differences, those that only the destination has
	Errors                uint64 // items that could not be compared: each is an Event
	Vanished              uint64 // items that were gone when their turn came: no failures
	LeftOut               uint64 // entries that Rules left out, or as they are snapshots; directories with all below them as one
	Elsewhere             uint64 // directories that OneFileSystem took for empty
	Elapsed               time.Duration
}

// Verify compares what the two places name, with all that lies below: names, types, sizes, every byte, targets of
// links, modes, times, and which names are one object. Nothing is changed. The error Is ErrDifferent if all was
// compared and something differs, and ErrIncomplete alone if something could not be compared.
func Verify(ctx context.Context, source, dest string, o VerifyOptions) (sum VerifySummary, err error) {
	tracker, done := o.tracker(ctx)
	defer done()
	chosen, err := o.filter()
	if err != nil {
		return sum, err
	}
	var sides [2]job.Place
	for i, text := range [...]string{source, dest} {
		p, oerr := o.open(ctx, text, place.Options{Reading: reading(tracker, "Verify")})
		if oerr != nil {
			return sum, oerr
		}
		defer func() { sum.Elsewhere, err = sum.Elsewhere+p.Mounts(), errors.Join(err, p.Close()) }()
		found, err := p.Resolve(ctx, false)
		if err != nil {
			return sum, reached(err)
		}
		sides[i] = job.Place{FS: p.FS, Handle: found.Handle}
	}
	s, err := job.Verify(ctx, job.VerifyOptions{
		Source: sides[0], Dest: sides[1], Pool: new(bufpool.Pool), Now: time.Now, Progress: tracker, Throttle: o.Rate.throttle(),
		Parallel: o.Parallel, Owner: o.Owner, ACLs: o.ACLs, Meta: o.Meta, OneFileSystem: o.OneFileSystem, Filter: chosen,
	})
	left, _ := chosen.Left()
	return VerifySummary{
		Files: s.Files, Dirs: s.Dirs, Symlinks: s.Symlinks, Hardlinks: s.Hardlinks, Nodes: s.Nodes, Bytes: s.Bytes, Differences: s.Differences,
		Missing: s.Missing, Extra: s.Extra, Errors: s.Errors, Vanished: s.Vanished + s.DirsGone,
		LeftOut: left, Elsewhere: s.Mounts, Elapsed: seconds(s.Seconds),
	}, verdict(reached(err), s.Errors, s.Differences)
}
