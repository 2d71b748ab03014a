package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/tools/idmap"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
)

type cpCmd struct {
	Places      []string `arg:"" place:"" name:"PLACE" help:"SOURCE ... DEST: what to copy, and, last, where to: paths, nfs://host/export/path or s3://BUCKET/PATH."`
	Recursive   bool     `short:"r" aliases:"R" help:"Copy directories with all that lies below them."`
	DryRun      bool     `name:"dry-run" short:"n" help:"Change nothing: say what would be copied."`
	Verify      bool     `help:"Read every copied file back and compare it with what was read; with --job those of earlier runs, too."`
	Job         jobName  `placeholder:"NAME" help:"Keep a record under this name; the same command, run again, goes on where it ended."`
	Parallel    int      `help:"Files to copy at once; 0 takes what suits the destination."`
	NoOwner     bool     `help:"Leave owners and groups as the destination makes them."`
	OtherSource bool     `name:"other-source" help:"With --job: copy although SOURCE is not the directory any more that it was."`
	NoResume    bool     `name:"no-resume" help:"Begin anew, and do not go on with a copy of the same command that was interrupted, or is under way."`
	pairFlags

	sync    *job.SyncOptions // of the commands sync and restore; nil: cp
	becomes bool             // DEST becomes what SOURCE is, a directory
	restore *restoring       // of the command restore; nil: another one
	mapped  *idmap.Map       // of ownerMap

	chosen    *filter.Filter
	madeDest  bool // the copy becomes DEST, a directory that did not exist
	stateless bool // no record can be kept
	recorded  bool // each directory that is copied has a record
	marked    bool // the temporaries that the last file has left are known by the next run
}

// pairFlags are those of cp, sync and verify, which have a tree on either side.
type pairFlags struct {
	failedFlag
	fileFlags
	nulFlag
	ruleFlags
	ownerMap
	rateFlags
	reportFlags
	mountFlags
	workersFlags
	clientFlags
	show
}

func (*cpCmd) Help() string { return cpHelp }

const cpHelp = `Copies files, directories, symbolic links, hard links, sparse files and special files with their
modes, access control lists and times, between directories of a Linux host with their extended
attributes, and with their owners where that is allowed. As with cp(1), a DEST that is a directory
receives each SOURCE under its own name, and a DEST that does not exist becomes the copy; several
SOURCEs need a DEST that is a directory, and two of one name are refused. The root of a server has no
name of its own, and neither has DIR/.: its contents go into DEST, which keeps its own mode and owner if
it was there, and the time of the last change of its names: verify lists a mode or time that differs.
Nothing is made if DEST lies within SOURCE. A DEST that is a device, a pipe or a socket is not replaced by
a file, with exit status 1: nfsbox cat SOURCE > DEST writes into it, as cp(1) would. In a tree it is.

A file appears under its name when it is complete and safe on the disk; until then it has a temporary
name beside it. An item that fails is reported, the rest goes on, and the exit status is 2.

Symbolic links are copied as they are; SOURCE/ and SOURCE/. are the directory that a link leads to. A
DEST that is a link to a directory is that directory. Through one that leads to a file a file is copied,
which replaces what it leads to, and not if it leads nowhere; a directory is not copied to a link that
leads to a file or nowhere, with exit status 2; anything else replaces the link. Below DEST no link is
followed. A link that would replace the very file that it leads to has failed. A URL whose last name is a
link to a directory that the server mounts is that directory, as SOURCE and as DEST.

Where DEST takes two names of the source for one (Makefile and makefile), the first is copied and the
others have failed. The source may be in use. What vanishes before its turn is noted and counted, and no
failure, unless it is back in the end. Directories that vanish are counted apart; one that is found
elsewhere in the source in the end has failed, as what is below it may be in no copy. In the end each
directory is looked up once more. Those that have changed since are listed again, twice at most, and what
is not in the copy is copied. Those that change on are noted and counted: what was made in them at the end
may not be in the copy. They have failed if older files still come into them, as one of those may be in no
copy. A file that only grows is copied as it was at first, and counted; one that changes each time it is
copied has failed. What cannot be preserved (owners, set-id bits, modes, times, access control lists,
extended attributes of a local source; holes, to s3://) is counted, and no failure either. NFSv3 has no times before 1970
or after 2106, and no extended attributes: of a source that is a server nobody can tell, and what it says
is copied. In the end DEST is looked up once more: if it was moved, removed or replaced during the copy,
the copy is not where it should be, with status 2. Of a file that took less than a second to copy to a
server this is not asked.

With --map-uid FROM:TO what user FROM has in SOURCE belongs to user TO in DEST, and what an access control
list gives FROM it gives TO; --map-gid does so for groups. FROM-LAST:TO is a range, whose last becomes
TO+LAST-FROM. Both may be given up to 1,024 times; two rules for one id are refused. All other ids stay.
An owner counts as lost if the copy has not the one that is meant. verify with the same flags compares them.

If a server stops answering, the destination is full, or the source as a whole is not there any more
(removed, or another directory is in its place), the copy ends, once, with status 4, 2 or 4, and says how
to go on. So does one that is interrupted, with status 130: it removes what is unfinished, but for parts of
large files, unless a server does not answer for 2 seconds; then it names the temporaries that stay (with --json notes of
"kind":"temporary", and temporaries_left in the summary). Directories below DEST that it has made and not
finished have mode 0700, so that what is half there is nobody's yet; so have those for whose contents
there was no space, or no answer. The next run that comes through gives them their own.

The copy of a directory that was interrupted or killed goes on when the same command is run again, and
says so. Files that are copied, unchanged and still there are passed over. For that a record is kept below
$XDG_STATE_HOME/nfsbox/unfinished (or ~/.local/state/nfsbox/unfinished), which is removed when the copy
has ended well, or a week after its last entry. The same command has the same SOURCE, DEST, --no-owner and
--one-file-system, on the same host. If DEST is not the directory any more that the copy went to, the
command begins anew, as cp(1) would, and so it does with --no-resume. Of several SOURCEs, the first 64
directories have records; files are copied anew. While the same copy is under way, the command is refused, with
status 1; with --no-resume it copies, and keeps no record. Where no record can be kept (no directory for it can be
written), a note says so, and the command run again begins anew.
A copy that is killed (kill -9) leaves files named .nfsbox-*.tmp, that of one file, too. The same
command removes them within a week, and no other does, as a copy may be at it. Those of a copy without a
record, and of one file after a loss of power, go by hand when nothing is copied there.

A file of more than 1 GiB, in a directory or alone, goes on within itself: each 256 MiB that are safe in DEST are
noted in the record. What an interrupted copy has of it stays there as .nfsbox-*.tmp, and is told of; the same
command goes on behind it, if SOURCE's file is unchanged and the temporary is that one. In any doubt it is
copied anew. With --verify all of it is compared. When the copy has ended well no such file is left; --no-resume removes
those of the copy before at its end, and a record that is forgotten names them.

With --job the record has a name, and stays: below $XDG_STATE_HOME/nfsbox/jobs (or
~/.local/state/nfsbox/jobs), with a job.json that says how the last run has ended. The same command, run
again at any time, passes over files that are recorded, unchanged, and still there, whose modes and owners it sets again where somebody has changed them. It reads
none of them: it goes by type, size, time and file id. Those that have another id it compares, as two may
have got each other's name, unless the first 16 or more of them show that ids do not last there, and none
has differed. With --verify it compares them all, as nothing else tells a copy that was changed and has
its old time again. What was copied only with --no-owner it copies again without it, and the other way
round.

The name belongs to this SOURCE and DEST: with others it is refused. If SOURCE is a directory, and another
one than it was, nothing is copied, with exit status 4: a file system may not be mounted there. With
--other-source it is copied. The copy that is interrupted and has no name does likewise, until --no-resume.
What DEST meant at first it means each time: the copy of a link to a directory is made again. Where DEST,
which became the copy, is a link to a directory by then, no directory is copied to where that leads,
unless a path of this host is given as DEST/. If DEST was a directory that received the copy, and is
gone, the job refuses to go on, with exit status 4.

nfsbox job lists copies that keep records, resumes, ends and forgets them.

With --dry-run nothing is changed, and no trial is made in DEST: what would be copied is named on stdout, a line each, and
counted, directories that are there already without a line. What an earlier run has recorded is not asked for: it
counts as to be copied. Further names of one object count as copies, and where DEST takes two names for one that
does not show. --verify is without effect. verify, with or without --meta, says how SOURCE and DEST differ.

--include, --exclude and --filter-from are rsync's, relative to SOURCE: of all, the first that matches an entry
decides, and what none matches is taken. --files-from lists paths instead, and --failed-to makes such a list of what
has failed. What is left out of SOURCE stays in DEST as it is.

  nfsbox cp -r --verify nfs://filer/export/home ./home
  nfsbox cp -r --job move-home nfs://old/export/home/. nfs://new/export/home
  nfsbox cp -r --map-uid 1000-1999:21000 nfs://old/export/home ./home
  nfsbox cp notes.txt nfs://filer/export/inbox/`

func (c *cpCmd) Run(e *env) (err error) {
	e.interruptible()
	named, err := c.begin(e.ctx)
	if named != nil {
		defer func() { err = errors.Join(err, named.Close()) }()
	}
	if err != nil {
		return c.notBegun(e, refused(err), &cpSummary{Summary: job.Summary{Errors: 1}})
	}
	sources, dest := c.Places[:len(c.Places)-1], c.Places[len(c.Places)-1]
	defer c.print(e)
	if err = c.choose(sources); err != nil {
		return c.notBegun(e, err, &cpSummary{Summary: job.Summary{Errors: 1}})
	}
	c.named = c.DryRun
	page, err := c.reportFlags.begin(e)
	defer func() { err = errors.Join(err, page.drop()) }()
	var tracker *progress.Tracker
	if err == nil {
		tracker, err = c.trackerTo(e, page)
	}
	if err != nil {
		return c.notBegun(e, err, &cpSummary{Summary: job.Summary{Errors: 1}})
	}
	c.reportSilence(e, silence.Track(tracker))
	sum := cpSummary{DryRun: c.DryRun, keeps: c.sync != nil && c.sync.Existing == job.Keep}
	failed, err := c.all(e, sources, dest, named, tracker, &sum)
	sum.Snapshot = c.restore.text()
	all := errors.Join(failed, err)
	err = errors.Join(err, named.end(e, &sum, tracker, all))
	sum.leftOut = leftOutOf(c.chosen)
	sum.Elsewhere = sum.Mounts
	ferr := c.finish(e, tracker, &sum, err)
	err = errors.Join(failed, err)
	count := tracker.Get(progress.Errors)
	if len(sources) > 1 && !interrupted(e) {
		count = sum.Errors // which has the sources that failed as a whole, too
	}
	if c.text() {
		sum.print(e.stderr, count)
	}
	ferr = errors.Join(ferr, page.write(e, ran{c.verb(), c.Places, countsOf(&sum, tracker), func(w io.Writer) { sum.print(w, count) }, err}))
	c.stays(e, dest, sum.Left)
	c.goOn(e, &sum, err)
	return errors.Join(err, ferr)
}

// begin checks the command line, and opens the job that it names, if any. The caller closes it.
func (c *cpCmd) begin(ctx context.Context) (*namedJob, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	named, err := openJob(ctx, c.Job)
	if named != nil {
		err = named.belongs(c.verb(), c.Places[0], c.Places[len(c.Places)-1])
	}
	return named, err
}

// choose reads what the flags choose of the source, and makes the file of what fails.
func (c *cpCmd) choose(sources []string) (err error) {
	if err := c.onlyOne(sources); err != nil {
		return refused(err)
	}
	if c.chosen, err = c.filter(c.From0, &c.fileFlags); err != nil {
		return err
	}
	c.show.retry, err = c.create(c.From0, sources, c.Places)
	return err
}

// notBegun returns err, with which a command has ended before its output began. In JSON it prints
// the error, and the summary.
func (s *show) notBegun(e *env, err error, summary any) error {
	if !s.JSON {
		return err
	}
	t := progress.New(progress.JSON(e.stdout), time.Now)
	s.whole(t, "", err)
	if ferr := t.Finish(summary); ferr != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", ferr))
	}
	return err
}

// all copies the sources one after the other. A refused source does not stop the others. The
// errors of sources, failed, have been reported and counted; err is any other.
func (c *cpCmd) all(e *env, sources []string, dest string, named *namedJob, tracker *progress.Tracker, sum *cpSummary) (failed, err error) {
	po, err := c.place(false)
	if err == nil {
		po.Reading = c.reading(e, tracker)
		err = c.prepare(e, po, tracker)
	}
	defer func() { err = errors.Join(err, c.restore.close()) }()
	if err != nil {
		return nil, err
	}
	po.Change, po.Reading = true, nil
	dst, err := place.Open(e.ctx, dest, po)
	if err != nil && !errors.Is(err, place.ErrUsage) && !errors.Is(err, place.ErrUnreachable) {
		if inside, _ := named.remembered(); inside {
			return nil, gone(dest, named)
		}
	}
	if err != nil {
		return nil, err
	}
	defer closePlace(dst, &err, &sum.RPCs)
	defer c.count(dst)
	r := &cpRun{cpCmd: c, e: e, limit: c.throttle(), named: named, tracker: tracker, sum: sum}
	defer r.uses.add(dst)()
	tracker.SetLoads(r.uses.loads)
	defer func() { err = errors.Join(err, r.giveUp(errors.Join(failed, err))) }()
	if err := r.known(dest, sources); err != nil {
		return nil, err
	}
	if r.to, err = c.destine(e.ctx, dst, named); err != nil {
		return nil, err
	}
	if err := r.resumes(); err != nil {
		return nil, err
	}
	for i, source := range sources {
		counted := sum.Errors
		r.more = i < len(sources)-1
		oerr := r.one(source)
		if oerr != nil && (sum.Errors == counted || !told(oerr) && !interrupted(e)) {
			sum.Errors++
			c.whole(tracker, source, oerr)
		}
		failed = errors.Join(failed, oerr)
		if e.ctx.Err() != nil || errors.Is(failed, job.ErrSilent) || errors.Is(failed, job.ErrFull) {
			return failed, nil
		}
	}
	if errors.Is(failed, job.ErrMoved) {
		return failed, nil
	}
	return failed, r.still()
}

func (c *cpCmd) check() error {
	switch {
	case len(c.Places) < 2:
		return errors.New("cp needs a SOURCE and a DEST")
	case c.Job != "" && len(c.Places) > 2:
		return errors.New("--job takes one SOURCE")
	case c.DryRun && c.Job != "":
		return errors.New("--dry-run keeps no record: leave --job out")
	case c.Job == "" && c.OtherSource:
		return errors.New("--other-source is for --job; a copy without begins anew with --no-resume")
	case c.Job != "" && c.NoResume:
		return errors.New("--no-resume is for copies without --job; with another NAME a job begins anew")
	case c.Parallel < 0 || c.Parallel > job.MaxParallel:
		return fmt.Errorf("--parallel takes 0 to %d", job.MaxParallel)
	}
	err := c.workersFlags.check(c.Job, c.Places...)
	if err != nil {
		return err
	}
	if c.mapped, err = c.ids(); err == nil && c.NoOwner && !c.mapped.Empty() {
		err = errMapNoOwner
	}
	return err
}

// cpSummary is the last event of cp.
type cpSummary struct {
	job.Summary
	leftOut
	RPCs   uint64 `json:"rpcs"`
	DryRun bool   `json:"dry_run,omitempty"` // nothing was changed: the numbers say what would be

	Snapshot string `json:"snapshot,omitempty"` // of restore: NAME@ID
	keeps    bool   // what was there was not judged
}

func (s *cpSummary) add(o *job.Summary) {
	for _, p := range [...]struct{ to, from *uint64 }{
		{&s.Files, &o.Files}, {&s.Dirs, &o.Dirs}, {&s.Symlinks, &o.Symlinks}, {&s.Hardlinks, &o.Hardlinks},
		{&s.Nodes, &o.Nodes}, {&s.Bytes, &o.Bytes}, {&s.Skipped, &o.Skipped}, {&s.Verified, &o.Verified},
		{&s.Errors, &o.Errors}, {&s.Changed, &o.Changed}, {&s.Vanished, &o.Vanished}, {&s.DirsGone, &o.DirsGone}, {&s.DirsChanged, &o.DirsChanged}, {&s.Grew, &o.Grew}, {&s.Left, &o.Left}, {&s.Kept, &o.Kept}, {&s.Mounts, &o.Mounts},
		{&s.NoSpace, &o.NoSpace}, {&s.DirsClosed, &o.DirsClosed},
		{&s.OwnersLost, &o.OwnersLost}, {&s.SetIDsLost, &o.SetIDsLost}, {&s.ModesLost, &o.ModesLost},
		{&s.TimesLost, &o.TimesLost}, {&s.ACLsLost, &o.ACLsLost}, {&s.LinksSplit, &o.LinksSplit}, {&s.AttrsSet, &o.AttrsSet},
		{&s.XattrsLost, &o.XattrsLost}, {&s.HolesLost, &o.HolesLost}, {&s.Unchanged, &o.Unchanged}, {&s.Deleted, &o.Deleted}, {&s.ToDelete, &o.ToDelete},
	} {
		*p.to += *p.from
	}
	s.Seconds += o.Seconds
}

// finish shows the summary. A task that has failed as a whole, other than by a source, counts as an
// error, so that its summary does not look like a success.
func (c *cpCmd) finish(e *env, tracker *progress.Tracker, sum *cpSummary, err error) error {
	if err != nil && (sum.Errors == 0 || !interrupted(e)) {
		sum.Errors++
		c.whole(tracker, "", err)
	}
	if ferr := tracker.Finish(sum); ferr != nil {
		return fmt.Errorf("output: %w", ferr)
	}
	return nil
}
