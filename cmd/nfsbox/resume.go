package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// keeps reports whether copies of directories keep records that have no name.
func (c *cpCmd) keeps() bool { return c.Job == "" && c.Recursive && job.Locks && !c.DryRun }

// known opens the record of an interrupted run, before DEST is understood. With several sources
// DEST is understood without it.
func (r *cpRun) known(dest string, sources []string) error {
	if !r.keeps() || len(sources) > 1 {
		return nil
	}
	prune(r.tracker)
	return r.open(sources[0], dest, false)
}

// open opens the record of a source, and makes one if make is set. If there can be none, the copy
// is made without.
func (r *cpRun) open(source, dest string, make bool) error {
	u, err := r.openUnfinished(r.e.ctx, source, dest, make)
	switch {
	case r.e.ctx.Err() != nil:
		return r.e.ctx.Err()
	case errors.Is(err, errEnded) && !r.NoResume && r.nests() != "":
		// DEST may be there only since then: then it would mean another place now.
		return refused(&advised{fmt.Errorf("the same %s is not begun once more: %w", r.does(), err), "run the command again if that is wanted" + r.nests()})
	case errors.Is(err, errEnded): // as if it had ended before
	case errors.Is(err, job.ErrRecord):
		if !r.NoResume {
			return r.underWay(err)
		}
		r.busy = true
		r.tracker.Report(progress.Event{Type: "note", Message: fmt.Sprintf("the same %s is under way, and this one keeps no record: %v", r.does(), err)})
	case err != nil:
		r.noRecord(err)
	}
	if r.kept = u; u != nil {
		r.records = append(r.records, u)
	}
	return nil
}

// underWay refuses a command that another run is at. By cp(1) the directory that the other has made would receive
// a second copy, and two of sync --delete would delete each other's temporaries.
func (r *cpRun) underWay(err error) error {
	return refused(&advised{fmt.Errorf("the same %s is under way, and is not begun once more: %w", r.does(), err), fmt.Sprintf("wait until it has ended, or end it: "+
		"nfsbox job ls shows it. With --no-resume this one is begun all the same, and keeps no record%s", r.nests())})
}

// nests says where a copy goes that does not go on with the one that has made DEST.
func (c *cpCmd) nests() string {
	if c.becomes || c.Job != "" || len(c.Places) > 0 && place.NamesContents(c.Places[0]) {
		return ""
	}
	return "; as with cp(1), a DEST that is a directory by then receives SOURCE under its own name"
}

// noRecord notes, once, that no record can be kept.
func (r *cpRun) noRecord(err error) {
	if r.stateless {
		return
	}
	r.stateless, err = true, noPlace(err)
	r.tracker.Report(progress.Event{Type: "note", Message: fmt.Sprintf("no record is kept, so that an interrupted copy cannot go on: %v; its command, run again, begins anew%s", err, r.nests())})
}

// leave ends what attend began. What stays says how the run has ended.
func (r *cpRun) leave(u *unfinished, goes bool, with error) error {
	if u.told == nil {
		return nil
	}
	u.rest()
	if goes {
		return nil
	}
	tellEnd(r.e, &u.told.Job, countsOf(r.sum, r.tracker), with)
	return u.told.Note()
}

// keepRecord opens the record of a source that is a directory with these attributes, and says
// whether the copy goes on.
func (r *cpRun) keepRecord(source string, attr *vfs.Attr) error {
	if !r.keeps() || r.busy || r.stateless || len(r.records) >= maxKept {
		return nil
	}
	if r.kept == nil {
		if err := r.open(source, r.to.Text, true); err != nil || r.kept == nil {
			return err
		}
		if len(r.Places) > 2 {
			if err := r.resumes(); err != nil {
				return err
			}
		}
	}
	u, from := r.kept, r.origin(attr)
	if u.resumed && u.was.From.Another(from) {
		if r.restore == nil {
			return otherSource(source, "bring it back and run the same command, or begin anew with --no-resume")
		}
		r.another()
		u.now.From = from
		if err := u.write(); err != nil {
			r.noRecord(err)
		}
	}
	if u.resumed {
		r.attend(u, source)
		return nil
	}
	now := begun{Source: jobPlace(source), Dest: jobPlace(r.to.Text), Inside: r.to.inside, From: from}
	if now.Inside {
		a, err := r.to.at.FS.GetAttr(r.e.ctx, r.to.at.Handle, vfs.MaskV3)
		if err != nil {
			return err
		}
		now.Dir = idOf(&a)
	}
	if err := u.begin(now, r.e.rand); err != nil {
		r.noRecord(err)
		r.kept = nil
		return nil
	}
	r.attend(u, source)
	return nil
}

// attend has the record say what the run is, and how far: nfsbox job shows that.
func (r *cpRun) attend(u *unfinished, source string) {
	if r.attendSoon(u, source) {
		if err := u.told.Note(); err != nil {
			r.notKept(err)
		}
	}
}

// attendSoon is attend, without the first writing.
func (r *cpRun) attendSoon(u *unfinished, source string) bool {
	d := &jobs.Dir{Root: u.dir, Record: u.lock}
	if !u.resumed || d.Load() != nil {
		d.Job = jobs.Job{} // what an earlier run has left says nothing of this one
	}
	var err error
	if d.Job, err = r.running(source, &d.Job); err != nil {
		r.notKept(err)
		return false
	}
	u.told = d
	u.rest = d.Attend(r.attending(d, false))
	return true
}

// resumes decides whether the copy goes on from r.kept: only if DEST still is what the
// interrupted run copied to.
func (r *cpRun) resumes() error {
	u := r.kept
	if u == nil || u.was == nil {
		return nil
	}
	same := false
	if !r.NoResume {
		var err error
		if same, err = r.sameDest(u); err != nil {
			return err
		}
	}
	what := "it goes on with the "
	if !same {
		what = "it does not go on with another one, as DEST is not the directory of the "
	}
	what += r.does() + u.ended()
	if !r.NoResume {
		r.tracker.Report(progress.Event{Type: "note", Message: what + u.at.Local().Format(time.DateTime) + "; --no-resume begins anew"})
	}
	if same {
		u.resumed, u.now, r.to.inside = true, *u.was, u.was.Inside
	}
	return nil
}

// sameDest reports whether DEST is the directory that an interrupted run copied to.
func (r *cpRun) sameDest(u *unfinished) (bool, error) {
	d := r.to
	if !d.inside && !d.synced || d.absent || !u.was.Inside && d.linked && !d.synced {
		return false, nil
	}
	a, err := d.at.FS.GetAttr(r.e.ctx, d.at.Handle, vfs.MaskV3)
	if err != nil {
		return false, err
	}
	if id := idOf(&a); id == nil || len(u.was.Dir) > 0 && !slices.Equal(id, u.was.Dir) {
		return false, nil
	}
	if u.was.Inside {
		return len(u.was.Dir) > 0, nil
	}
	// If the directory is not known, the run was killed when it had just made it. If it is, a new
	// directory may have got its number: then nothing of the copy is there.
	empty := true
	for _, err := range d.at.FS.ReadDir(r.e.ctx, d.at.Handle, vfs.Pos{}, 0, 0) {
		if err != nil {
			return false, err
		}
		empty = false
		break
	}
	if len(u.was.Dir) == 0 {
		return empty, nil
	}
	return !empty || !job.Recorded(u.dir), nil
}

// giveUp closes the records, and removes them if all has ended well, without the error. One that
// this run has begun, and that has nothing to go on from, goes as well.
func (r *cpRun) giveUp(with error) (err error) {
	well := with == nil && r.sum.Errors == 0
	for _, u := range r.records {
		goes := well || !u.resumed && u.was == nil && u.idle()
		err = errors.Join(err, r.leave(u, goes, with), u.close(goes))
	}
	if err != nil {
		err = fmt.Errorf("the copy's record: %w", err)
	}
	return err
}
