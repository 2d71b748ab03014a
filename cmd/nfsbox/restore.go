package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

type restoreCmd struct {
	Snapshot  string  `arg:"" place:"" name:"STORE::NAME" help:"The snapshot, and a path in it if not all is meant: STORE::NAME[@ID][/PATH]."`
	Dest      string  `arg:"" place:"" name:"PLACE" help:"Where to: a path or nfs://host/export/path. It is made if it does not exist."`
	Overwrite string  `enum:"never,changed,always" default:"changed" placeholder:"WHEN" help:"What happens to a file that is there: it stays (never), is replaced if its size or time of last change differ (changed), or is replaced (always) (default: changed)."`
	DryRun    bool    `name:"dry-run" short:"n" help:"Change nothing: say what would be restored, and set."`
	Verify    bool    `help:"Read every restored file back and compare it with what was read, and the files that are there with the same size and time, too: one that differs is replaced."`
	Job       jobName `placeholder:"NAME" help:"Keep a record under this name; the same command, run again, goes on where it ended."`
	Parallel  int     `help:"Files to restore at once; 0 takes what suits PLACE."`
	NoOwner   bool    `help:"Leave owners and groups as PLACE makes them."`
	NoResume  bool    `name:"no-resume" help:"Begin anew, and do not go on with a restore of the same command that was interrupted."`
	failedFlag
	fileFlags
	nulFlag
	pathRules
	ownerMap
	rateFlags
	reportFlags
	clientFlags
	show
}

func (*restoreCmd) Help() string { return restoreHelp }

const restoreHelp = `Brings back what nfsbox backup has stored: a whole snapshot, a directory in it, or one file. STORE::NAME is
the newest complete snapshot of that name, STORE::NAME@ID that one; nfsbox snapshots ls STORE lists them. An
incomplete one, in which something of the tree is missing, is restored if its ID is given, and said to be one.

A directory becomes PLACE: its contents go into it, and it gets the directory's mode, owner and times. A file
becomes PLACE, or goes into it under its own name if it is a directory. What the snapshot does not have stays. All
attributes come back that PLACE takes: owners (as root, or with --map-uid and --map-gid as others), modes, times,
access control lists, extended attributes, hard links, holes, special files. What it does not take is counted, and
no failure, as with nfsbox cp.

With --overwrite=changed, files that are there with the same size and time stay, and get their modes, owners, access
control lists and extended attributes again; others are replaced. Lists and attributes that the snapshot does not
have are taken away from them where the backup has looked for such (nfsbox snapshots show says so; of attributes: as root).
Before such a file gets another owner its contents are compared, and it is replaced if they differ, or if it has more names than
the snapshot says. It is always replaced if it would get set-id bits or capabilities. What else a file that stays gets its
names outside of PLACE get, too; one that is replaced leaves those as they are. With never, whatever is there stays as it is, directories with their modes and times, too: only
what is missing is made. With always all files are made anew. A file gets its name when it is whole and safe on the
disk, so that one which is replaced is never half there. A directory in the way of a file, or a file in the way of
a directory, is never replaced: that item has failed. A symbolic link below PLACE is replaced, or in the way, and never
followed.

Every byte is compared with the checksum that the snapshot has of it before it is written. A file of which an object of the
store is damaged or missing has failed, with that object in the message, and does not get its name; so has a directory
whose list is damaged. All others are restored, and the exit status is 2. nfsbox snapshots check names everything that a
damage hurts.

A restore that was interrupted or killed goes on when the same command is run again, and says so: files that are
restored and unchanged are passed over, and what has failed is tried again. For that a record is kept, as by nfsbox cp
for copies of directories: with --job under a name, and for good. If NAME has a newer snapshot by then, that one is
restored; what it does not have stays of the one before, and a note says so. STORE::NAME@ID is the same each time.

While it runs nfsbox snapshots prune, of whatever host, removes nothing: a lease in the store says so. In one that may
only be read there is none, which a note says: do not forget and prune there meanwhile. What is gone has failed.

--include, --exclude and --filter-from are rsync's, relative to what is restored: of all, the first that matches an
entry decides, and what none matches is taken. --files-from lists paths instead, and --failed-to makes such a list
of what has failed.

  nfsbox restore /backup::home ./home
  nfsbox restore /backup::home@20261128t230000.000z/ann nfs://filer/home/ann
  nfsbox restore --overwrite=never --exclude '*.tmp' /backup::home /home
  nfsbox restore -n /backup::home /home`

// Run is a copy with other rules: what is in a snapshot comes to PLACE.
func (c *restoreCmd) Run(e *env) error {
	c.saw = new(causes)
	how := &job.SyncOptions{ACLs: true, Wary: true, Compare: c.Verify && c.Overwrite == "changed" && !c.DryRun, Existing: map[string]job.Existing{"never": job.Keep, "changed": job.Update, "always": job.Replace}[c.Overwrite]}
	return (&cpCmd{
		Places: []string{c.Snapshot, c.Dest}, Recursive: true, DryRun: c.DryRun, Verify: c.Verify, Job: c.Job, Parallel: c.Parallel,
		NoOwner: c.NoOwner, NoResume: c.NoResume, sync: how, restore: new(restoring),
		pairFlags: pairFlags{
			failedFlag: c.failedFlag, fileFlags: c.fileFlags, nulFlag: c.nulFlag, ruleFlags: ruleFlags{pathRules: c.pathRules, Snapshots: true},
			ownerMap: c.ownerMap, rateFlags: c.rateFlags, reportFlags: c.reportFlags, clientFlags: c.clientFlags, show: c.show,
		},
	}).Run(e)
}

// restoring is what is restored.
type restoring struct {
	store *place.Store // nil: it is not open yet
	snap  *snapshot.Snapshot
	path  string // in it
}

// text is the snapshot as NAME@ID; "" if it is not known.
func (r *restoring) text() string {
	if r == nil || r.snap == nil {
		return ""
	}
	ref := r.snap.Ref()
	return ref.Text()
}

// close closes the store, if it is open; r may be nil.
func (r *restoring) close() error {
	if r == nil || r.store == nil {
		return nil
	}
	return aboutStore(r.store, r.store.Close())
}

// prepare opens the snapshot of a restore, and finds what is to be restored of it: a directory becomes PLACE.
func (c *cpCmd) prepare(e *env, po place.Options, t *progress.Tracker) error {
	r := c.restore
	if r == nil {
		return nil
	}
	text, name, path, ok := place.DivideText(c.Places[0])
	if !ok {
		return notASnapshot(c.Places[0])
	}
	store, err := place.OpenStore(e.ctx, text, place.StoreOptions{Reading: po.Reading, Dial: po.Dial, Silent: po.Silent})
	if err != nil {
		return err
	}
	r.store = store
	if err := apart(text, c.Places[1]); err != nil {
		return err
	}
	ref, err := store.Find(e.ctx, name)
	if err != nil {
		return err
	}
	if r.snap, err = snapshot.Open(e.ctx, store, ref); err != nil {
		return aboutStore(store, err)
	}
	seen := cmp.Or(ref.Looked, new(snapshot.Looked))
	c.sync.OwnLists, c.sync.OwnXattrs = !seen.ACLs, !seen.Xattrs || !seen.Privileged || !seen.Special
	f := r.snap.FS()
	root, _, err := f.Root(e.ctx)
	if err != nil {
		return err
	}
	found, err := vfs.Resolve(e.ctx, f, root, path, false)
	if err != nil {
		return fmt.Errorf("%s::%s/%s: %w", text, ref.Text(), path, err)
	}
	r.path = strings.Trim(path, "/")
	c.becomes = found.Attr.Type == vfs.TypeDir || found.Handle == root
	if !ref.Complete {
		t.Report(progress.Event{Type: "note", Message: ref.Text() + " is incomplete: what could not be read when it was taken is not in it"})
	}
	return nil
}

// apart refuses a PLACE that lies within the store: what is restored would be taken for a part of that.
func apart(store, dest string) error {
	if place.IsURL(store) || place.IsURL(dest) {
		return nil
	}
	at, err := os.Stat(store)
	if err != nil {
		return place.Reached(err)
	}
	inside, err := liesIn(filepath.Join(dest, "x"), at)
	if errors.Is(err, fs.ErrNotExist) {
		inside, err = liesIn(dest, at) // the directory above it is there, or opening it says so
	}
	if inside {
		return refused(fmt.Errorf("%s lies within the store %s: name another PLACE", dest, store))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// origin is that of SOURCE, as a record knows it: of a restore which snapshot it is.
func (c *cpCmd) origin(a *vfs.Attr) jobs.Origin {
	if c.restore == nil {
		return originOf(a)
	}
	sum := sha256.Sum256([]byte(c.restore.text()))
	n := func(i int) uint64 { return binary.BigEndian.Uint64(sum[8*i:]) }
	return jobs.Origin{FSID: [2]uint64{n(0), n(1)}, FileID: n(2)}
}

// another notes that a restore goes on with another snapshot than it began with.
func (r *cpRun) another() {
	r.tracker.Report(progress.Event{Type: "note", Message: "it began with another snapshot, and goes on with " + r.restore.text() +
		": what that one does not have stays of the one before"})
}
