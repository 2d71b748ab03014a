package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/base/throttle"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// cpRun is one run of cp, with one destination.
type cpRun struct {
	*cpCmd
	e       *env
	to      *destination
	named   *namedJob // of --job; nil without
	tracker *progress.Tracker
	sum     *cpSummary

	limit *throttle.Throttle
	uses  inUse

	records []*unfinished // open ones
	kept    *unfinished   // of the source at hand; nil: none
	busy    bool          // another run has the record
	more    bool          // a source follows

	at     spot     // where the last source was copied to
	root   vfs.Attr // of the copy that became DEST, if it is a directory
	lasted bool     // DEST is to be looked up in the end
}

// one copies one source.
func (r *cpRun) one(source string) (err error) {
	po, err := r.place(false)
	if err != nil {
		return err
	}
	po.OneFileSystem = r.OneFileSystem
	po.Note, po.Reading = noteOf(r.tracker), r.reading(r.e, r.tracker)
	src, err := r.source(source, po)
	if err != nil {
		return err
	}
	defer closePlace(src, &err, &r.sum.RPCs)
	defer r.uses.add(src)()
	defer r.count(src)
	defer func() { r.sum.Mounts += src.Mounts() }()
	from, err := src.Resolve(r.e.ctx, false)
	if err != nil {
		return err
	}
	if r.becomes && from.Attr.Type != vfs.TypeDir {
		return notADirectory(source, from.Attr.Type)
	}
	if from.Attr.Type == vfs.TypeDir && !r.Recursive {
		return &exitError{status: exitUsage, err: fmt.Errorf("%s is a directory; -r copies it with all that lies below it", source)}
	}
	if from.Attr.Type != vfs.TypeDir && r.FilesFrom != "" {
		return refused(fmt.Errorf("%s: %w: --files-from lists paths in one", source, vfs.ErrNotDir))
	}
	return r.receive(src, &from, po)
}

// noteOf reports what there is to say of a snapshot.
func noteOf(t *progress.Tracker) func(text string) {
	return func(text string) { t.Report(progress.Event{Type: "note", Message: text}) }
}

// source opens SOURCE.
func (r *cpRun) source(arg string, po place.Options) (*place.Place, error) {
	if r.restore != nil {
		return place.Of(r.restore.snap.FS(), r.restore.path, arg, nil), nil
	}
	return place.Open(r.e.ctx, arg, po)
}

// receive makes the destination ready for what is at from, and copies it there.
func (r *cpRun) receive(src *place.Place, from *vfs.Resolved, po place.Options) (err error) {
	named, err := r.to.asName(r.e.ctx, &from.Attr, po)
	if err != nil {
		return err
	}
	if named != nil {
		defer closePlace(named, &err, &r.sum.RPCs)
		defer r.uses.add(named)()
		defer r.count(named)
	}
	at, skip, err := r.to.receive(src, &from.Attr)
	if err != nil {
		return err
	}
	if skip {
		r.tracker.Report(progress.Event{Type: "note", Path: src.Text, Message: "given more than once, and copied once"})
		return nil
	}
	if err := r.named.run(r, src, &from.Attr); err != nil {
		return err
	}
	isDir := from.Attr.Type == vfs.TypeDir
	r.madeDest = r.to.absent && !r.to.inside && isDir && !r.becomes
	if isDir {
		if err := r.keepRecord(src.Text, &from.Attr); err != nil {
			return err
		}
	}
	r.recorded = isDir && r.kept != nil
	o := r.options(src, from, at, isDir)
	team, err := r.lead(src, isDir, at.name, o.ID)
	if err != nil {
		return err
	}
	o.Hands = team.hands()
	s, err := r.copy(src.Text, &from.Attr, o)
	cerr := team.close()
	s.Left += team.left()
	if err == nil {
		err = cerr
	}
	r.kept, r.at = nil, at
	if err == nil {
		s.Errors += missing(r.chosen, r.tracker)
	}
	r.sum.add(&s)
	long := !place.IsURL(r.to.Text) || s.Dirs > 0 || s.Seconds > askAfter.Seconds()
	r.lasted = r.lasted || err == nil && !r.DryRun && long && (isDir || named == nil) // named is closed by then
	if err == nil {
		err = sameStill(r.e.ctx, src, from, po, &r.sum.RPCs)
	}
	if status := s.ExitCode(err); status != exitOK {
		if err != nil {
			err = r.withRoom(fmt.Errorf("%s %s to %s: %w", r.does(), src.Text, r.to.Text, err))
		}
		return &exitError{status: status, err: err}
	}
	return nil
}

// options are those of the copy of from to at.
func (r *cpRun) options(src *place.Place, from *vfs.Resolved, at spot, isDir bool) job.CopyOptions {
	o := job.CopyOptions{
		Source: job.Place{FS: r.mapped.Of(src.FS), Handle: from.Handle}, SourceDir: from.Dir, SourceName: from.Name,
		Dest: at.Place, Name: at.name, There: at.there, Above: r.to.Above, KeepDest: r.to.inside, Made: r.to.made,
		Pool: new(bufpool.Pool), Random: randReader(r.e.rand), Now: time.Now, Progress: r.tracker, Throttle: r.limit, More: r.more, Each: r.Verbose, OneFileSystem: r.OneFileSystem,
		Parallel: r.Parallel, Owner: !r.NoOwner, Verify: r.Verify, Sync: r.sync, Filter: r.chosen, DryRun: r.DryRun,
		Rooted: func(a vfs.Attr) error { r.root = a; return nil },
	}
	if n := r.named; n != nil {
		o.Record, o.Locked, o.ID = n.Root, n.Record, jobID(r.verb(), src.Text, r.to.Text)
	}
	if u := r.kept; u != nil && isDir {
		o.Record, o.ID, o.RecordOptional = u.dir, u.id(), true
		o.Rooted = func(a vfs.Attr) error {
			r.root = a
			if err := u.rooted(&a); err != nil {
				r.noRecord(err)
			}
			return nil
		}
	}
	return o
}

// sameStill returns an error if the name of src leads to another directory by now than from,
// which was copied. Since a rename changes the ctime of from, the name is looked up only if that
// has changed. If the server does not answer, that is no error.
func sameStill(ctx context.Context, src *place.Place, from *vfs.Resolved, po place.Options, rpcs *uint64) error {
	if from.Attr.Type != vfs.TypeDir {
		return nil // a replaced file was copied whole, either the old or the new one
	}
	now, err := src.FS.GetAttr(ctx, from.Handle, vfs.MaskV3)
	if err == nil && now.Ctime.Equal(from.Attr.Ctime) {
		return nil
	}
	if _, kept := src.Snapshot(); kept {
		return nil // by the same name there may be a newer one
	}
	again, err := place.Open(ctx, src.Text, beside(po))
	if err != nil {
		return nil
	}
	var ignored error // nothing was written there
	defer closePlace(again, &ignored, rpcs)
	r, err := again.Resolve(ctx, false)
	const id = vfs.MaskFSID | vfs.MaskFileID
	if err != nil || !r.Attr.Has(id) || !from.Attr.Has(id) || r.Attr.FSID == from.Attr.FSID && r.Attr.FileID == from.Attr.FileID {
		return nil
	}
	return fmt.Errorf("%w: its name is that of another %v now", job.ErrGone, r.Attr.Type)
}

// closePlace closes p, and adds its number of calls to rpcs and its error to err.
func closePlace(p *place.Place, err *error, rpcs *uint64) {
	if s, ok := p.Stats(); ok {
		*rpcs += s.RPCs
	}
	*err = errors.Join(*err, p.Close())
}
