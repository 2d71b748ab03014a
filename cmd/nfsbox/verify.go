package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/tools/idmap"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
	"github.com/nfsbox/nfsbox/vfs"
)

type verifyCmd struct {
	Source   string  `arg:"" place:"" name:"SOURCE" help:"A path, nfs://host/export/path or s3://BUCKET/PATH."`
	Dest     string  `arg:"" place:"" name:"DEST" help:"What shall be the same."`
	Parallel int     `help:"Files to compare at once; 0 takes the default."`
	Job      jobName `placeholder:"NAME" help:"With --workers: the name by which the workers know the job."`
	Owner    bool    `help:"Compare owners and groups as well."`
	ACLs     bool    `name:"acls" help:"Compare access control lists and extended attributes as well."`
	Meta     bool    `help:"Read no file: compare all but the contents of files, whose sizes and times stand for them."`
	pairFlags
}

func (*verifyCmd) Help() string {
	return verifyHelp
}

const verifyHelp = `Compares two trees: names, types, sizes, every byte of every file, the targets of links, modes,
times and which names belong to one object. What is missing, extra or different is listed. Nothing is
changed. A mode of the source that is but what an access control list shows, where the copy has what the
list gives to the group itself, is no difference, and counted: so cp makes it where it cannot keep the
list. Nor is a time before 1970 or after 2106, which NFSv3 does not have, where the copy has the nearest
that it has, and DEST is one of NFSv3 or a mount that may be. Owners are compared with --owner or a --map-uid or --map-gid alone, access control lists and extended attributes with
--acls alone. Then one that DEST does not have is a difference. A server has no extended attributes to ask
for: those of a SOURCE on a server are not compared, and that is noted. Holes count as zeros. What is a
hole on both sides is not read where both tell, as local file systems do; NFSv3 does not, so that a sparse
file of a server is read whole. A directory that was moved within SOURCE meanwhile could not be compared.
Nor could one of SOURCE that has other times in the end, as what came into it was perhaps not met; if
something in it has vanished, it is noted and counted.

With --meta no file is read: that costs what listing both sides costs, and targets of links are compared all the same. What
has changed in a file without a trace in its size and time is not found then.

SOURCE is compared with DEST itself, also where DEST is a directory: what cp -r s d has copied into a d
that was there, verify s d/s compares. Links mean what they mean to cp: a SOURCE that is a symbolic link
is that link, SOURCE/ the directory that it leads to; a DEST that is a link is what that leads to, unless
SOURCE is a link, too. A URL whose last name is a link to a directory that the server mounts is that
directory, on both sides: of the copy of such a link it is not the link that is compared.

With the --map-uid and --map-gid that cp had, the owners in SOURCE, and the users and groups in its lists,
are taken for those that they became.

The exit status is 0 if all is the same, 3 if there are differences, 2 if something could not be
compared, whether or not there are differences as well, or SOURCE or DEST is not there, and 4 if one
cannot be reached, or SOURCE is lost meanwhile. A comparison that is interrupted has status 130; run
again, it compares all again.

--include, --exclude and --filter-from are rsync's, relative to SOURCE: of all, the first that matches an entry
decides, and what none matches is taken. --files-from lists paths instead, and --failed-to makes such a list of what
could not be compared, is missing in DEST, or has another type, size, content or target there: cp or sync with that list
copies it. What is left out of SOURCE is neither missing in DEST nor extra there.

  nfsbox verify nfs://filer/export/home ./home
  nfsbox verify --meta --owner nfs://filer/export/home ./home
  nfsbox verify --json ./a ./b | jq 'select(.type=="difference")'`

// verifySummary is the last event of verify.
type verifySummary struct {
	job.VerifySummary
	leftOut
	RPCs uint64 `json:"rpcs"`
	Meta bool   `json:"meta,omitempty"` // no file was read
}

// check refuses flags that do not go together.
func (c *verifyCmd) check() error {
	switch {
	case c.Parallel < 0 || c.Parallel > job.MaxParallel:
		return fmt.Errorf("--parallel takes 0 to %d", job.MaxParallel)
	case c.Job != "" && c.Workers == "":
		return errors.New("--job is for --workers: a comparison keeps no record")
	case c.Meta && c.Workers != "":
		return errors.New("with --meta no file is read: leave --workers out")
	}
	return c.workersFlags.check(c.Job, c.Source, c.Dest)
}

func (c *verifyCmd) Run(e *env) (err error) {
	if err := c.check(); err != nil {
		return c.notBegun(e, refused(err), &verifySummary{VerifySummary: job.VerifySummary{Errors: 1}})
	}
	mapped, err := c.ids()
	if err != nil {
		return c.notBegun(e, refused(err), &verifySummary{VerifySummary: job.VerifySummary{Errors: 1}})
	}
	defer c.print(e)
	chosen, err := c.filter(c.From0, &c.fileFlags)
	if err == nil {
		c.show.retry, err = c.create(c.From0, nil, []string{c.Source, c.Dest})
	}
	if err != nil {
		return c.notBegun(e, err, &verifySummary{VerifySummary: job.VerifySummary{Errors: 1}})
	}
	c.items = c.Meta
	page, err := c.reportFlags.begin(e)
	defer func() { err = errors.Join(err, page.drop()) }()
	var tracker *progress.Tracker
	if err == nil {
		tracker, err = c.trackerTo(e, page)
	}
	if err != nil {
		return c.notBegun(e, err, &verifySummary{VerifySummary: job.VerifySummary{Errors: 1}})
	}
	c.reportSilence(e, silence.Track(tracker))
	po, err := c.place(false)
	if err != nil {
		return err
	}
	po.OneFileSystem = c.OneFileSystem
	sum := verifySummary{Meta: c.Meta}
	err = c.verify(e, po, mapped, job.VerifyOptions{
		Pool: new(bufpool.Pool), Now: time.Now, Progress: tracker, Throttle: c.throttle(), Parallel: c.Parallel, Owner: c.Owner || !mapped.Empty(), ACLs: c.ACLs, Meta: c.Meta, Each: c.Verbose, Filter: chosen, OneFileSystem: c.OneFileSystem,
	}, &sum)
	sum.leftOut = leftOutOf(chosen)
	sum.Elsewhere = sum.Mounts
	// A failure as a whole must not look like a success.
	if err != nil && sum.Errors == 0 && sum.Differences == 0 {
		sum.Errors = 1
		c.whole(tracker, "", err)
	}
	if ferr := tracker.Finish(&sum); ferr != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", ferr))
	}
	if c.text() {
		sum.print(e.stderr, tracker.Get(progress.Errors))
	}
	count := tracker.Get(progress.Errors)
	err = errors.Join(err, page.write(e, ran{"verify", []string{c.Source, c.Dest}, countsOf(&sum, tracker), func(w io.Writer) { sum.print(w, count) }, err}))
	if err != nil && interrupted(e) {
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: of what was compared no record is kept; to compare all again: %s\n", commandLine(e.name, e.args))
	}
	return err
}

// print writes the verdict: what was compared, what differs, and how many items have failed.
func (s *verifySummary) print(w io.Writer, failed uint64) {
	head := "the same: "
	if s.Differences > 0 || s.Errors > 0 || s.Vanished > 0 || s.DirsChanged > 0 {
		head = "compared: "
	}
	if s.Meta {
		head = strings.TrimSuffix(head, ": ") + ", but for contents, which were not read: "
	}
	verdict(w,
		line{head, items(s.Files, s.Dirs, s.Symlinks, s.Hardlinks, s.Nodes)},
		line{"", text(counted{s.Vanished, "vanished meanwhile"}, counted{s.DirsGone, goneDirs}, counted{s.DirsChanged, "directory changed meanwhile, and may have more|directories changed meanwhile, and may have more"})},
		line{"left out: ", s.words()},
		line{"not preserved: ", text(
			counted{s.ACLsLost, "access control list, whose mode is as a copy has it|access control lists, whose modes are as a copy has them"},
			counted{s.TimesLost, "time that NFSv3 does not have|times that NFSv3 does not have"},
		)},
		line{"different: ", text(counted{s.Differences, "difference|differences"}, counted{s.Missing, "of them missing in DEST"}, counted{s.Extra, "of them only in DEST"})},
		line{"failed: ", text(counted{failed, "item that could not be compared|items that could not be compared"})},
	)
}

func (c *verifyCmd) verify(e *env, po place.Options, mapped *idmap.Map, o job.VerifyOptions, sum *verifySummary) (err error) {
	var sides [2]struct {
		place *place.Place
		found vfs.Resolved
	}
	var uses inUse
	o.Progress.SetLoads(uses.loads)
	po.Note, po.Reading = noteOf(o.Progress), reading(e, o.Progress, "verify")
	for i, arg := range [...]string{c.Source, c.Dest} {
		p, oerr := place.Open(e.ctx, arg, po)
		if oerr != nil {
			err = errors.Join(err, c.failed(o.Progress, sum, arg, oerr))
			continue
		}
		defer closePlace(p, &err, &sum.RPCs)
		defer uses.add(p)()
		defer c.count(p)
		defer func() { sum.Mounts += p.Mounts() }()
		found, rerr := p.Resolve(e.ctx, false)
		err = errors.Join(err, c.failed(o.Progress, sum, arg, rerr))
		sides[i].place, sides[i].found = p, found
	}
	if err != nil {
		return err
	}
	src, dst := &sides[0], &sides[1]
	o.Source = job.Place{FS: mapped.Of(src.place.FS), Handle: src.found.Handle}
	if o.Dest, err = copyAt(e.ctx, dst.place, &src.found.Attr, &dst.found); err != nil {
		return err
	}
	if src.found.Attr.Type == vfs.TypeSymlink && dst.found.Attr.Type != vfs.TypeSymlink {
		o.Progress.Report(progress.Event{Type: "note", Path: c.Source, Message: "a symbolic link, and compared as one, as cp copies it; SOURCE/ is the directory that it leads to"})
	}
	if src.found.Attr.Type != vfs.TypeDir && c.FilesFrom != "" {
		return refused(fmt.Errorf("%s: %w: --files-from lists paths in one", c.Source, vfs.ErrNotDir))
	}
	team, err := c.lead(e, &o, src.found.Attr.Type)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, team.close()) }()
	o.Hands = team.hands()
	sum.VerifySummary, err = job.Verify(e.ctx, o)
	if err == nil {
		sum.Errors += missing(o.Filter, o.Progress)
		c.hint(e, src.place, &o, sum)
	} else if !interrupted(e) {
		_ = c.failed(o.Progress, sum, "", err) // err is returned below
	}
	if status := sum.ExitCode(err); status != exitOK {
		return &exitError{status: status, err: err}
	}
	return nil
}

// failed reports and counts an error that ends the comparison, and returns it; nil is none.
func (c *verifyCmd) failed(t *progress.Tracker, sum *verifySummary, path string, err error) error {
	if err != nil {
		sum.Errors++
		c.whole(t, path, err)
	}
	return err
}

// hint says, if nothing of a directory was found, that DEST has a directory of its name: cp makes
// the copy there if DEST existed before.
func (c *verifyCmd) hint(e *env, src *place.Place, o *job.VerifyOptions, sum *verifySummary) {
	name := ownName(src)
	if name == "" || sum.Missing == 0 || sum.Files+sum.Symlinks+sum.Hardlinks+sum.Nodes > 0 || sum.Dirs > 1 {
		return
	}
	_, there, _, err := o.Dest.FS.Lookup(e.ctx, o.Dest.Handle, name)
	if err != nil || there.Type != vfs.TypeDir {
		return // the hint is optional
	}
	o.Progress.Report(progress.Event{Type: "note", Path: c.Dest, Message: "it has a directory of the name of SOURCE, " +
		"as after a copy into a DEST that was there: verify SOURCE DEST/" + name + " compares that"})
}

// copyAt is where cp has made a source's copy for DEST: at the target of a link, unless the source
// is a link itself.
func copyAt(ctx context.Context, dst *place.Place, src *vfs.Attr, found *vfs.Resolved) (job.Place, error) {
	if found.Attr.Type != vfs.TypeSymlink || src.Type == vfs.TypeSymlink {
		return job.Place{FS: dst.FS, Handle: found.Handle}, nil
	}
	f, r, err := dst.Follow(ctx)
	return job.Place{FS: f, Handle: r.Handle}, err
}
