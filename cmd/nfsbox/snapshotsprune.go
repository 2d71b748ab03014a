package main

import (
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
)

// maxWait bounds how long a prune with --wait waits for others. Then it gives way.
const maxWait = 24 * time.Hour

type snapshotsPruneCmd struct {
	Store  string `arg:"" place:"" name:"STORE" help:"The store."`
	DryRun bool   `name:"dry-run" short:"n" help:"Change nothing: say what would be removed."`
	All    bool   `help:"Remove everything if the store has no snapshot at all."`
	Young  bool   `help:"Remove also what is younger than an hour, as a backup has left it that has filled the disk."`
	Wait   bool   `help:"Wait for backups, restores and checks that are under way, for a day at most, and do not give way."`
	snapshotsFlags
	progressFlags
}

func (*snapshotsPruneCmd) Help() string {
	return `Removes what no snapshot needs: what forgotten snapshots alone had, and what backups have left that were killed. What a
backup can go on from (partial in nfsbox snapshots ls) is kept.

A prune is safe beside all else. Backups, restores and checks, also of other hosts, say in the store that they are under
way; while one does, nothing is removed: the prune gives way, with status 2, or waits with --wait. A backup that begins meanwhile waits for it.
What was killed counts for ten minutes. Nothing is removed if a snapshot cannot be read, or something else lies in the
place of one: what it needs is not known. The message says what to do. Nor is anything removed if the store has no
snapshot, as it may be another one than was meant: --all says that it is.

What is younger than an hour stays for the next time: a host may have fallen asleep right before it puts something that
needs it. --young removes that as well, where no host of those that use the store is asleep. What a backup has stored
that ended early is needed, as the next one goes on from it, until forget --partial.

  nfsbox snapshots prune -n /backup
  nfsbox snapshots prune --wait /backup`
}

func (c *snapshotsPruneCmd) options() upkeep.PruneOptions {
	o := upkeep.PruneOptions{DryRun: c.DryRun, All: c.All}
	if c.Young {
		o.Grace = -1
	}
	return o
}

// pruneSummary is the last event of snapshots prune.
type pruneSummary struct {
	upkeep.PruneSummary
	Errors  uint64  `json:"errors"`
	Seconds float64 `json:"seconds"`
}

func (c *snapshotsPruneCmd) Run(e *env) error {
	var sum pruneSummary
	r := summedRun(e, c.JSON, func(errors uint64, seconds float64) any {
		sum.Errors, sum.Seconds = errors, seconds
		return &sum
	})
	r.waits, r.held = c.Wait, "run it again when that has ended; prune waits for it with --wait"
	return c.lookWith(r, c.Store, place.StoreOptions{Write: !c.DryRun, Existing: true, Alone: !c.DryRun}, func(r *storeRun) (err error) {
		sum.PruneSummary, err = r.prune(c.options(), &c.progressFlags)
		if errors.Is(err, upkeep.ErrEmpty) {
			err = refused(err)
		}
		return aboutStore(r.store, r.heldBy(err))
	})
}

// prune prunes the store, and prints what that has done. It waits for others as the run does.
func (r *storeRun) prune(o upkeep.PruneOptions, f *progressFlags) (sum upkeep.PruneSummary, err error) {
	o.Lease = lease.OfCommand("nfsbox snapshots prune", randReader(r.e.rand))
	if r.waits {
		o.Lease.Wait = maxWait
		o.Lease.Waiting = func(h lease.Holder) { r.note("waiting for " + h.Text()) }
	}
	o.Progress = f.tracker(r)
	sum, err = upkeep.Prune(r.e.ctx, r.store, o)
	if errors.Is(err, object.ErrNoSpace) {
		err = &advised{err, "a prune needs two blocks there, for its name and its lease: forget snapshots first, or remove something else"}
	}
	err = errors.Join(err, o.Progress.Finish(nil))
	if !r.json && !f.Quiet {
		r.pruned(&sum)
	}
	if err == nil && sum.Missing > 0 {
		err = &exitError{status: exitIncomplete}
	}
	return sum, err
}

// pruned is the verdict of a prune.
func (r *storeRun) pruned(s *upkeep.PruneSummary) {
	gone := "removed: "
	if s.DryRun {
		gone = "would be removed: "
	}
	verdict(r.stderr,
		line{"store: ", text(counted{s.Snapshots, "snapshot|snapshots"}, counted{s.Partials, "partial one|partial ones"}, counted{s.Objects, "object|objects"}) + sizeText(s.Objects, s.Bytes)},
		line{gone, text(counted{s.Removed, "object|objects"}) + sizeText(s.Removed, s.RemovedBytes)},
		line{"kept as they are young: ", text(counted{s.Young, "object|objects"}) + sizeText(s.Young, s.YoungBytes)},
		line{"missing: ", text(counted{s.Missing, "object that snapshots need; nfsbox snapshots check says what it hurts|objects that snapshots need; nfsbox snapshots check says what they hurt"})},
	)
}
