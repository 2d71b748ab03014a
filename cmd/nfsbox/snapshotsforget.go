package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/find"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
)

type snapshotsForgetCmd struct {
	Store     string   `arg:"" place:"" name:"STORE" help:"The store."`
	Snapshots []string `arg:"" optional:"" name:"NAME@ID" help:"Forget these, whatever the rules say; of ID its beginning will do if one alone has it."`
	Name      string   `placeholder:"NAME" help:"Judge the snapshots of this name alone; without it those of each name by themselves."`
	Tag       []string `sep:"none" placeholder:"TAG" help:"Judge those alone that have TAG; of several, all of them."`
	Last      int      `name:"keep-last" placeholder:"N" help:"Keep the newest N."`
	Daily     int      `name:"keep-daily" placeholder:"N" help:"Keep the newest one of each of the last N days that have one, a complete one before an incomplete one."`
	Weekly    int      `name:"keep-weekly" placeholder:"N" help:"The same of weeks, which begin on Monday."`
	Monthly   int      `name:"keep-monthly" placeholder:"N" help:"The same of months."`
	Yearly    int      `name:"keep-yearly" placeholder:"N" help:"The same of years."`
	Within    string   `name:"keep-within" placeholder:"AGE" help:"Keep all that are at most AGE older than the newest one: 12h, 7d, 2w."`
	Partial   bool     `help:"Drop, too, what backups that were stopped have left to go on from."`
	DryRun    bool     `name:"dry-run" short:"n" help:"Change nothing: say what would be forgotten."`
	Prune     bool     `help:"Then remove what no snapshot needs any more, as nfsbox snapshots prune does."`
	Wait      bool     `help:"With --prune: wait for backups, restores and checks that are under way, for a day at most, and do not give way."`
	snapshotsFlags
	progressFlags
}

func (*snapshotsForgetCmd) Help() string {
	return `Removes snapshots that no rule keeps. A rule is one of the --keep flags: a snapshot is kept if one of them keeps it. They
judge the snapshots of each name by themselves; days, weeks and months are those of this host's time zone. Without
any rule, and without NAME@ID, nothing is forgotten, with status 1.

Each rule judges the complete snapshots first, as if there were no others. So none of them is forgotten for an
incomplete one, and the newest complete one of a name always stays. Then it keeps an incomplete one where no complete
one stands for it: --keep-daily 7 that of a day without a complete one, among the last 7 days that have a snapshot,
and so with weeks, months and years; --keep-last 7 one that is among the newest 7 of all; --keep-within 7d one that is
at most so much older than the newest of all. Other incomplete ones are forgotten.

One that is damaged is kept, and told of, with status 2: forget it by NAME@ID. What a backup has left to go on from stays without
--partial.

What only forgotten snapshots had stays in the store until nfsbox snapshots prune removes it, or this with --prune. That
gives way as prune does, with status 2: the snapshots are forgotten then, and the next prune removes what they had. In a
directory of this host that somebody is reading nothing is forgotten, either. With -n the summary says what would be
removed when those snapshots were forgotten.

  nfsbox snapshots forget -n --keep-daily 7 --keep-monthly 12 /backup
  nfsbox snapshots forget --keep-within 2w --keep-yearly 10 /backup
  nfsbox snapshots forget --prune --keep-daily 7 /backup
  nfsbox snapshots forget /backup home@20261128t230000.000z`
}

// forgetSummary is the last event of snapshots forget.
type forgetSummary struct {
	upkeep.ForgetSummary
	Seconds float64              `json:"seconds"`
	Prune   *upkeep.PruneSummary `json:"prune,omitempty"` // with --prune: what that has done
}

// options reads the flags.
func (c *snapshotsForgetCmd) options() (o upkeep.ForgetOptions, err error) {
	o = upkeep.ForgetOptions{
		Name: c.Name, Tags: c.Tag, Snapshots: c.Snapshots, KeepLast: c.Last, Daily: c.Daily, Weekly: c.Weekly, Monthly: c.Monthly, Yearly: c.Yearly,
		Zone: time.Local, Partial: c.Partial, DryRun: c.DryRun,
	}
	if min(c.Last, c.Daily, c.Weekly, c.Monthly, c.Yearly) < 0 {
		return o, refused(errors.New("the --keep flags take numbers from 0"))
	}
	if c.Wait && !c.Prune {
		return o, refused(errors.New("--wait is for --prune: forgetting waits for nobody"))
	}
	if c.Within != "" {
		now := time.Now()
		since, err := find.ParseSince(c.Within, now)
		if err != nil || !since.Before(now) {
			return o, refused(fmt.Errorf("--keep-within: %q is no age, such as 7d", c.Within))
		}
		o.Within = now.Sub(since)
	}
	return o, nil
}

func (c *snapshotsForgetCmd) Run(e *env) error {
	var sum forgetSummary
	r := summedRun(e, c.JSON, func(errors uint64, seconds float64) any {
		sum.Errors, sum.Seconds = errors, seconds
		return &sum
	})
	o, err := c.options()
	if err != nil {
		return r.refuse(c.Store, err)
	}
	if r.waits = c.Wait; c.Prune {
		r.held = "run it again when that has ended; --wait waits for it"
	}
	return c.lookWith(r, c.Store, place.StoreOptions{Write: !c.DryRun, Existing: true, Alone: c.Prune && !c.DryRun}, func(r *storeRun) error {
		gone := make(map[string]bool)
		o.Item = func(i upkeep.ForgetItem) {
			if i.Forgotten && c.Prune && c.DryRun {
				gone[i.Snapshot] = true
			}
			r.forgotten(&i, c.DryRun, c.Quiet)
		}
		if err := c.forget(r, o, &sum); err != nil || !c.Prune {
			return err
		}
		return c.prune(r, gone, &sum)
	})
}

// forget forgets snapshots, and prints how many.
func (c *snapshotsForgetCmd) forget(r *storeRun, o upkeep.ForgetOptions, sum *forgetSummary) (err error) {
	sum.ForgetSummary, err = upkeep.Forget(r.e.ctx, r.store, o)
	switch {
	case errors.Is(err, snapshot.ErrNoSnapshot):
		return r.missing(append(slices.Clip(c.Snapshots), c.Name), err)
	case errors.Is(err, upkeep.ErrNoRule), errors.Is(err, snapshot.ErrName):
		return refused(aboutStore(r.store, err))
	case err != nil:
		return aboutStore(r.store, err)
	case o.Rules() && len(c.Tag) > 0 && sum.Judged == 0:
		r.note("no snapshot that could be judged has the tag " + strings.Join(c.Tag, " and the tag "))
	}
	if !r.json && !c.Quiet {
		gone, dropped := "forgotten", "partial one dropped|partial ones dropped"
		if c.DryRun {
			gone, dropped = "would be forgotten", "partial one would be dropped|partial ones would be dropped"
		}
		verdict(r.stderr, line{"", text(counted{sum.Kept, "kept"}, counted{sum.Forgotten, gone}, counted{sum.Partials, dropped})})
	}
	return nil
}

// prune removes what no snapshot needs any more; gone are those that would be forgotten.
func (c *snapshotsForgetCmd) prune(r *storeRun, gone map[string]bool, sum *forgetSummary) error {
	pruned, err := r.prune(upkeep.PruneOptions{DryRun: c.DryRun, Without: gone}, &c.progressFlags)
	sum.Prune = &pruned
	if err == nil || told(err) {
		return err
	}
	again := "run nfsbox snapshots prune " + r.store.Text
	switch {
	case errors.Is(err, lease.ErrHeld):
		err = &advised{err, again + " when that has ended; --wait waits for it. What was killed counts for ten minutes"}
	case errors.Is(err, upkeep.ErrEmpty):
		err = &advised{err, again + " --all if that is meant"}
	}
	if c.DryRun {
		return fmt.Errorf("%s: would not be pruned: %w", r.store.Text, err)
	}
	return fmt.Errorf("%s: not pruned: %w", r.store.Text, err)
}

// missing is the error of the first of some snapshots that the store does not have, with what there is; else err.
func (r *storeRun) missing(texts []string, err error) error {
	for _, text := range texts {
		if _, none := r.store.Find(r.e.ctx, text); errors.Is(none, snapshot.ErrNoSnapshot) {
			return none
		}
	}
	return refused(aboutStore(r.store, err))
}

// forgotten prints what becomes of a snapshot.
func (r *storeRun) forgotten(i *upkeep.ForgetItem, dry, quiet bool) {
	if i.Err != nil {
		r.failed(i.Snapshot, fmt.Errorf("%s: %w", i.Snapshot, i.Err))
		return
	}
	// Flushing returns the error of stdout.
	if r.json {
		_ = r.event("forget", i)
		return
	}
	if quiet {
		return
	}
	what := "kept"
	switch {
	case i.Forgotten && dry:
		what = "would be forgotten"
	case i.Forgotten:
		what = "forgotten"
	}
	_ = r.text(fmt.Sprintf("%-9s  %s  (%s)\n", what, progress.Clean(i.Snapshot), strings.Join(i.Why, ", ")))
}
