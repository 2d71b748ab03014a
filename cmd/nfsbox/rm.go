package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/remove"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
	"github.com/nfsbox/nfsbox/vfs"
)

type rmCmd struct {
	Places        []string `arg:"" place:"" name:"PLACE" help:"What to remove: nfs://host/export/path, in whose last parts *, ? (as %3F) and [ stand for names."`
	Recursive     bool     `short:"r" aliases:"R" help:"Remove directories with all that lies below them."`
	Dir           bool     `short:"d" help:"Remove empty directories."`
	Force         bool     `short:"f" help:"What is not there is no failure."`
	DryRun        bool     `name:"dry-run" short:"n" help:"Remove nothing, and name what would be removed."`
	All           bool     `help:"With -r: remove also all that lies in the root of an export or of a mounted file system, which itself stays."`
	OneFileSystem bool     `name:"one-file-system" short:"x" help:"Leave directories that are on another file system than PLACE; each has failed."`
	Parallel      int      `help:"Objects to remove at once, 1 to 1024; the server's pace is kept in any case (default: 64)."`
	Job           jobName  `placeholder:"NAME" help:"With --workers: the name by which the workers know the job."`
	failedFlag
	fileFlags
	nulFlag
	ruleFlags
	reportFlags
	workersFlags
	clientFlags
	show
}

func (*rmCmd) Help() string {
	return `Removes files, and with -r directories with all that lies below them, of a server. For paths of this host there
is rm(1). A symbolic link is removed, and never followed: directories are entered by the handles that their listings gave, so
that one which is replaced meanwhile, by a link or by another directory, leads nowhere else. It is left, and has failed.

A directory goes when all in it is gone. What fails is reported, the rest goes on, and the exit status is 2; of
the directories above it nothing more is said. Nothing is asked, and nothing can be brought back: -n shows on stdout what would go. What a
run has not removed, as it was interrupted or the server went away, the same command removes.

What --exclude and the other flags leave out stays, with the directories above it. They are asked about all below a PLACE,
and about what a pattern in PLACE stands for. Of --files-from only what it lists goes, with
all below it. With --newer, --min-size or --max-size files alone go, and all directories stay. Directories of snapshots stay
without --snapshots.

Refused are . and .. at the end of a PLACE, and without --all the root of an export or of a mounted file system.

  nfsbox rm 'nfs://filer/export/log/*.old'
  nfsbox rm -r -n nfs://filer/export/projects/done
  nfsbox rm -r --exclude '*.keep' --failed-to again nfs://filer/export/scratch`
}

// Validate is called by kong.
func (c *rmCmd) Validate() error {
	switch {
	case c.Parallel < 0 || c.Parallel > remove.MaxParallel:
		return fmt.Errorf("--parallel takes 1 to %d", remove.MaxParallel)
	case c.All && !c.Recursive:
		return errors.New("--all is for -r")
	case c.FilesFrom != "" && !c.Recursive:
		return errors.New("--files-from is for -r: it lists paths in a directory")
	}
	for _, arg := range c.Places {
		if !place.IsURL(arg) {
			return notServers(arg, "rm(1)")
		}
		if place.NamesContents(arg) {
			return fmt.Errorf("%s: . and .. are not removed", arg)
		}
	}
	return c.onlyOne(c.Places)
}

// notServers is the error of an argument that is no server's; program is what does the same on this host.
func notServers(arg, program string) error {
	if _, _, _, ok := place.Divide(arg); ok {
		return fmt.Errorf("%s: a snapshot is read-only: nothing in it is removed; nfsbox snapshots forget gives up a whole one", arg)
	}
	return fmt.Errorf("%s is a path of this host: there is %s", arg, program)
}

// rmSummary is the last event of rm.
type rmSummary struct {
	Files    uint64 `json:"files"` // names of files
	Dirs     uint64 `json:"dirs"`
	Symlinks uint64 `json:"symlinks"`
	Nodes    uint64 `json:"nodes"`
	Errors   uint64 `json:"errors"`
	DryRun   bool   `json:"dry_run"` // nothing was removed: it would be
	leftOut
	Seconds float64 `json:"seconds"`
	RPCs    uint64  `json:"rpcs"`
}

// removal is rm under way.
type removal struct {
	*rmCmd
	e       *env
	po      place.Options
	tracker *progress.Tracker
	chosen  *filter.Filter
	failed  *failedFile
	page    *runReport
	exports map[string][]string // paths, by server
	errors  atomic.Uint64
	other   atomic.Uint64 // directories of other file systems
	sum     rmSummary
}

func (c *rmCmd) Run(e *env) (err error) {
	began := time.Now()
	r := &removal{rmCmd: c, e: e, exports: make(map[string][]string), sum: rmSummary{DryRun: c.DryRun}}
	defer c.print(e)
	defer func() { err = errors.Join(err, r.page.drop()) }()
	if err := r.begin(); err != nil {
		return c.notBegun(e, err, &rmSummary{Errors: 1, DryRun: c.DryRun})
	}
	err = errors.Join(r.all(), r.failed.close())
	s := &r.sum
	s.Files, s.Dirs = r.tracker.Get(progress.Files), r.tracker.Get(progress.Dirs)
	s.Symlinks, s.Nodes = r.tracker.Get(progress.Symlinks), r.tracker.Get(progress.Nodes)
	s.Errors, s.leftOut, s.Seconds = r.errors.Load(), leftOutOf(r.chosen), time.Since(began).Seconds()
	s.Elsewhere = r.other.Load()
	if ferr := r.tracker.Finish(s); ferr != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", ferr))
	}
	if c.text() {
		s.print(e.stderr)
	}
	if err == nil && s.Errors > 0 {
		err = &exitError{status: exitIncomplete}
	}
	err = errors.Join(err, r.page.write(e, ran{"rm", c.Places, countsOf(s, r.tracker), s.print, err}))
	if err != nil && interrupted(e) {
		_, _ = fmt.Fprintf(e.stderr, "nfsbox: to remove the rest: %s\n", commandLine(e.name, e.args))
	}
	return err
}

// check refuses flags that do not go together.
func (c *rmCmd) check() error {
	switch {
	case c.Job != "" && c.Workers == "":
		return errors.New("--job is for --workers: a removal keeps no record")
	case c.Workers != "" && (len(c.Places) > 1 || !c.Recursive):
		return errors.New("--workers take one PLACE, and -r")
	}
	return c.workersFlags.check(c.Job, c.Places...)
}

// begin reads the flags, and starts the output.
func (r *removal) begin() (err error) {
	if err := r.check(); err != nil {
		return refused(err)
	}
	o := filter.Options{FilesAlone: r.fileFlags != fileFlags{}}
	if r.chosen, err = r.filterOf(o, r.From0, &r.fileFlags); err != nil {
		return err
	}
	if r.failed, err = r.create(r.From0, r.Places, nil); err != nil {
		return err
	}
	r.Verbose, r.items, r.named = r.Verbose || r.DryRun, true, r.DryRun
	if r.page, err = r.reportFlags.begin(r.e); err != nil {
		return err
	}
	if r.tracker, err = r.trackerTo(r.e, r.page); err != nil {
		return err
	}
	r.reportSilence(r.e, silence.Track(r.tracker))
	r.po, err = r.place(false)
	r.po.Change = true
	return err
}

// all removes what the arguments stand for, one after the other. One that fails as a whole does not stop the others.
func (r *removal) all() (err error) {
	for arg, oerr := range glob.Each(r.e.ctx, r.Places, r.po) {
		if oerr == nil {
			oerr = onePlace(r.e.ctx, arg, r.po, r.open, func(p *place.Place) error {
				defer func() {
					r.count(p)
					if s, ok := p.Stats(); ok {
						r.sum.RPCs += s.RPCs
					}
				}()
				return r.one(p)
			})
		}
		switch {
		case oerr == nil, r.Force && errors.Is(oerr, fs.ErrNotExist) && !errors.Is(oerr, place.ErrUnreachable):
			continue
		case r.e.ctx.Err() != nil:
			return errors.Join(err, oerr)
		}
		r.errors.Add(1)
		r.whole(r.tracker, arg, oerr)
		r.failed.add(".")
		err = errors.Join(err, oerr)
	}
	return err
}

// one removes what a place names.
func (r *removal) one(p *place.Place) error {
	dir, name, err := p.Parent(r.e.ctx)
	if err != nil {
		return err
	}
	t := remove.Target{Dir: dir, Name: name, Path: "."}
	if name == "" {
		var root vfs.Resolved
		root, err = p.Resolve(r.e.ctx, true)
		t.Handle, t.Attr, t.Inside = root.Handle, root.Attr, true
	} else if t.Handle, t.Attr, _, err = p.FS.Lookup(r.e.ctx, dir, name); err == nil && !t.Attr.Has(vfs.MaskV3) {
		t.Attr, err = p.FS.GetAttr(r.e.ctx, t.Handle, vfs.MaskV3)
	}
	if err != nil {
		return about(p, err)
	}
	isDir := t.Attr.Type == vfs.TypeDir
	if !slices.Contains(r.Places, p.Text) && !r.chosen.Allows(name, &t.Attr) { // a pattern stands for it
		r.chosen.LeftOut(&vfs.Entry{Name: []byte(name), Attr: t.Attr})
		return nil
	}
	switch {
	case !isDir && (place.MeansDir(p.Text) || r.FilesFrom != ""):
		return about(p, vfs.ErrNotDir)
	case isDir && !r.Recursive && !r.Dir:
		return about(p, fmt.Errorf("%w; -r removes it with all that lies below it", vfs.ErrIsDir))
	case isDir && !t.Inside:
		t.Inside = r.isRoot(p, &t)
	}
	if t.Inside && !r.All {
		return &exitError{status: exitUsage, err: fmt.Errorf("%s is the root of an export or of a mounted file system: -r --all removes what lies in it", p.Text)}
	}
	return r.from(p, t)
}

// open opens an argument by its name, or if it is exported by itself: the directory above may not be.
func (r *removal) open(ctx context.Context, arg string, po place.Options) (*place.Place, error) {
	if r.Recursive && r.isExport(arg) {
		return place.Open(ctx, arg, po)
	}
	return openName(ctx, arg, po)
}

// isRoot reports whether a directory is exported, or the root of a file system.
func (r *removal) isRoot(p *place.Place, t *remove.Target) bool {
	up, err := p.FS.GetAttr(r.e.ctx, t.Dir, vfs.MaskV3)
	other := err == nil && up.Has(vfs.MaskFSID) && t.Attr.Has(vfs.MaskFSID) && up.FSID != t.Attr.FSID
	return other || r.isExport(p.Text)
}

// isExport reports whether the server says that it exports what a URL names.
func (r *removal) isExport(arg string) bool {
	u, err := nfsbox.ParseURL(arg)
	if err != nil {
		return false // opening it says what is wrong
	}
	return slices.ContainsFunc(r.exportsOf(u), func(export string) bool { return path.Clean(export) == path.Clean(u.Path) })
}

// askExports bounds the question for a server's exports: one that does not say them has those that it has mounted.
const askExports = 5 * time.Second

// exportsOf are the paths that a server exports, as far as it says.
func (r *removal) exportsOf(u *nfsbox.URL) []string {
	server := *u
	server.Path = "/"
	at := server.String()
	if known, ok := r.exports[at]; ok {
		return known
	}
	ctx, cancel := context.WithTimeout(r.e.ctx, askExports)
	defer cancel()
	list, _ := nfsbox.Exports(ctx, at, r.po.Dial...)
	paths := []string{}
	for _, x := range list {
		paths = append(paths, x.Path)
	}
	r.exports[at] = paths
	return paths
}

// from removes a target from the file system of its place.
func (r *removal) from(p *place.Place, t remove.Target) (err error) {
	f := p.FS
	if r.DryRun {
		f = dryFS{f}
	}
	names := spell(p)
	if r.OneFileSystem && t.Attr.Has(vfs.MaskFSID) {
		t.Within = &t.Attr.FSID
	}
	t.Choice = remove.Choice{Choose: r.chosen.Choose, LeftOut: r.chosen.LeftOut, Stays: r.chosen.Through}
	team, err := r.lead(p, t.Attr.Type)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, team.close()) }()
	parallel := r.Parallel
	if team != nil {
		parallel = remove.MaxParallel // workers have bounds of their own
	}
	x := remove.New(r.e.ctx, f, remove.Options{
		Parallel: parallel, Unlink: team.unlink(f),
		Ask:     func(string, vfs.Type) (bool, error) { return true, nil },
		Removed: func(at string, t vfs.Type) { r.removed(names, at, t) },
		Failed:  func(at string, err error) error { return r.fail(names, at, err) },
	})
	if t.Attr.Type == vfs.TypeDir && !r.Recursive {
		err = r.emptyDir(f, &t, names)
	} else {
		err = x.Remove(t)
	}
	if werr := x.Wait(); err == nil {
		err = werr
	}
	if errors.Is(err, vfs.ErrNoAnswer) {
		return &exitError{status: exitUnreachable, err: fmt.Errorf("%s: %w: %w", p.Text, job.ErrSilent, err)}
	}
	if err == nil && !r.Force {
		for at := range r.chosen.Missing() {
			err = errors.Join(err, r.fail(names, at, errNotListed))
		}
	}
	return about(p, err)
}

// emptyDir removes a directory in which nothing is.
func (r *removal) emptyDir(f vfs.FS, t *remove.Target, names *speller) error {
	if r.DryRun {
		for _, err := range f.ReadDir(r.e.ctx, t.Handle, vfs.Pos{}, 0, 0) {
			if err == nil {
				err = vfs.ErrNotEmpty
			}
			return r.fail(names, t.Path, err)
		}
	}
	if _, err := f.Remove(r.e.ctx, t.Dir, t.Name, true); err != nil {
		return r.fail(names, t.Path, err)
	}
	r.removed(names, t.Path, vfs.TypeDir)
	return nil
}

// removed counts what was removed.
func (r *removal) removed(names *speller, at string, t vfs.Type) {
	counter := progress.Nodes
	switch t {
	case vfs.TypeReg:
		counter = progress.Files
	case vfs.TypeDir:
		counter = progress.Dirs
	case vfs.TypeSymlink:
		counter = progress.Symlinks
	}
	r.tracker.Add(counter, 1)
	if r.Verbose {
		kind := "removed"
		if r.DryRun {
			kind = "would be removed"
		}
		r.tracker.Report(progress.Event{Type: "done", Kind: kind, Path: spelled(names, at)})
	}
}

// fail reports what has failed. If the server is silent, it returns the error, which ends the work.
func (r *removal) fail(names *speller, at string, err error) error {
	if errors.Is(err, vfs.ErrNoAnswer) {
		return err
	}
	if errors.Is(err, remove.ErrOtherFS) {
		r.other.Add(1)
	}
	r.errors.Add(1)
	r.failed.add(at)
	r.tracker.Add(progress.Errors, 1)
	r.tracker.Report(progress.Event{Type: "error", Path: spelled(names, at), Message: fault.Text(err), Err: err})
	return nil
}

// spelled is the place of a path below that of names, or itself for ".".
func spelled(names *speller, at string) string {
	if at == "." {
		return names.below("")
	}
	return names.below("/" + at)
}

// dryFS removes nothing.
type dryFS struct{ vfs.FS }

func (dryFS) Remove(context.Context, vfs.Handle, string, bool) (vfs.WCC, error) {
	return vfs.WCC{}, nil
}

// print writes the verdict.
func (s *rmSummary) print(w io.Writer) {
	head := "removed: "
	if s.DryRun {
		head = "would be removed: "
	}
	verdict(w,
		line{head, items(s.Files, s.Dirs, s.Symlinks, 0, s.Nodes)},
		line{"left out: ", s.words()},
		line{"failed: ", text(counted{s.Errors, "item|items"})},
	)
}
