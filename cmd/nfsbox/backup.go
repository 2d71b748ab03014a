package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/silence"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
	"github.com/nfsbox/nfsbox/vfs"
)

type backupCmd struct {
	Place     string   `arg:"" place:"" name:"PLACE" help:"A directory: a path or nfs://host/export/path."`
	Store     string   `arg:"" place:"" name:"STORE" help:"Where snapshots are kept: a directory of its own, nfs://host/export/path or s3://BUCKET/PREFIX."`
	Name      string   `placeholder:"NAME" help:"What the snapshots of this tree have in common: up to 64 of a-z, 0-9, '-', '_' and '.' (default: made of PLACE)."`
	Tag       []string `sep:"none" placeholder:"TAG" help:"Mark the snapshot with TAG, by which snapshots are kept and found; may be given up to 64 times."`
	Verify    bool     `help:"Read back from STORE all that the snapshot needs, also of files that have not changed, compare it, and mend what is damaged."`
	DryRun    bool     `name:"dry-run" short:"n" help:"Read no file and store nothing: say which files would be read, and why."`
	Change    string   `default:"size,mtime,ctime,fileid" placeholder:"LIST" help:"Read files again whose size, mtime, ctime or fileid is another one; leave out what wanders at a server without a change (default: size,mtime,ctime,fileid)."`
	Plain     bool     `help:"Store files as they are, without compression."`
	Existing  bool     `help:"Never make a store: fail if there is none at STORE."`
	FromEmpty bool     `name:"delete-from-empty" help:"Make a snapshot also where there is nothing in PLACE, and the one before has something."`
	Parallel  int      `placeholder:"N" help:"Files to read at once, 1 to 64 (default: 8)."`
	fileFlags
	nulFlag
	ruleFlags
	rateFlags
	mountFlags
	clientFlags
	show

	chosen *filter.Filter
	uses   inUse
	begun  bool // the source and the store are open
}

// backupSummary is the last event of backup.
type backupSummary struct {
	backup.Summary
	leftOut
	Seconds float64 `json:"seconds"`
	RPCs    uint64  `json:"rpcs"`
	DryRun  bool    `json:"dry_run,omitempty"` // nothing was read or stored: the numbers say what would be
}

// check reads the flags.
func (c *backupCmd) check() (o backup.Options, err error) {
	if c.Parallel < 0 || c.Parallel > backup.MaxParallel {
		return o, refused(fmt.Errorf("--parallel takes 1 to %d", backup.MaxParallel))
	}
	o = backup.Options{Parallel: c.Parallel, OneFileSystem: c.OneFileSystem, Plain: c.Plain, DryRun: c.DryRun, Verify: c.Verify, FromEmpty: c.FromEmpty, Each: c.Verbose, Now: time.Now, Privileged: os.Geteuid() == 0}
	if o.Change, err = backup.ParseChange(c.Change); err != nil {
		return o, refused(fmt.Errorf("--change: %w", err))
	}
	if c.Name == "" {
		c.Name = backupName(c.Place)
	}
	o.Meta = snapshot.Meta{Name: c.Name, Source: sourceText(c.Place), Tags: c.Tag}
	if err := o.Meta.Check(); err != nil {
		return o, refused(err)
	}
	if c.chosen, err = c.filter(c.From0, &c.fileFlags); err != nil {
		return o, err
	}
	o.Filter, o.Throttle = c.chosen, c.throttle()
	return o, nil
}

func (c *backupCmd) Run(e *env) (err error) {
	e.interruptible()
	began := time.Now()
	o, err := c.check()
	if err != nil {
		return c.notBegun(e, err, &backupSummary{Summary: backup.Summary{Errors: 1}})
	}
	defer c.print(e)
	c.saw = new(causes)
	tracker, err := c.tracker(e)
	if err != nil {
		return c.notBegun(e, err, &backupSummary{Summary: backup.Summary{Errors: 1}})
	}
	c.reportSilence(e, silence.Track(tracker))
	o.Progress = tracker
	tracker.SetLoads(c.uses.loads)
	sum := backupSummary{DryRun: c.DryRun}
	err = c.all(e, o, &sum)
	sum.leftOut.LeftOut, sum.leftOut.Snapshots = c.chosen.Left()
	sum.Seconds = time.Since(began).Seconds()
	if err != nil && !told(err) {
		if !interrupted(e) { // which is nothing that has failed
			sum.Errors++
		}
		c.whole(tracker, "", err)
	}
	if ferr := tracker.Finish(&sum); ferr != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", ferr))
	}
	if c.text() && c.begun {
		sum.print(e.stderr, c.Name)
		if c.saw.denied {
			_, _ = fmt.Fprintln(e.stderr, "nfsbox: what this user may not read makes each snapshot incomplete: run it as root, or leave that out with --exclude")
		}
	}
	c.goOn(e, sum.Partial, err)
	return err
}

// goOn says how a backup that was broken off goes on.
func (c *backupCmd) goOn(e *env, partial bool, err error) {
	if errors.Is(err, backup.ErrEmpty) || errors.Is(err, backup.ErrItself) {
		return // the same command would come to the same
	}
	if err == nil || c.DryRun || !c.begun || !interrupted(e) && told(err) {
		return
	}
	head := "to try again"
	if partial {
		head = "to go on from here"
	}
	_, _ = fmt.Fprintf(e.stderr, "nfsbox: %s: %s\n", head, e.inItsDir(e.args))
}

// all opens the places, and backs up.
func (c *backupCmd) all(e *env, o backup.Options, sum *backupSummary) (err error) {
	po, err := c.place(false)
	if err != nil {
		return err
	}
	po.OneFileSystem = c.OneFileSystem
	src, err := place.Open(e.ctx, c.Place, po)
	if err != nil {
		return err
	}
	defer closePlace(src, &err, &sum.RPCs)
	defer c.uses.add(src)()
	defer c.count(src)
	defer func() { sum.Elsewhere = src.Mounts() + sum.Mounts }()
	from, err := src.Resolve(e.ctx, false)
	if err != nil {
		return err
	}
	if from.Attr.Type != vfs.TypeDir {
		return notADirectory(c.Place, from.Attr.Type)
	}
	store, err := c.open(e.ctx, o.Progress, po)
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { err = errors.Join(err, store.Close()) }()
		o.Store, o.StoreDir = store, store.Dir
	}
	o.FS, o.Root, o.Leave = src.FS, from.Handle, storeWithin(c.Place, c.Store)
	o.Meta.Host, _ = os.Hostname() // a snapshot may lack it
	o.Begun = func() { c.begun = true }
	sum.Summary, err = backup.Leased(e.ctx, o, lease.OfCommand("backup", randReader(e.rand)))
	if err != nil {
		err = fmt.Errorf("back up %s to %s: %w", src.Text, c.Store, err)
	}
	switch {
	case errors.Is(err, backup.ErrItself):
		err = refused(err)
	case errors.Is(err, object.ErrNoSpace):
		err = &advised{err, "make room for STORE, as by nfsbox snapshots forget and prune, and run the same command again"}
	}
	if place.Lost(err) {
		return &exitError{exitUnreachable, err}
	}
	if err != nil {
		return err
	}
	switch {
	case sum.Errors > 0:
		return &exitError{status: exitIncomplete}
	case sum.Differences > 0:
		return &exitError{status: exitDiffers}
	}
	return nil
}

// open opens the store. It is nil if there is none, and it is not to be made.
func (c *backupCmd) open(ctx context.Context, t *progress.Tracker, po place.Options) (*place.Store, error) {
	so := place.StoreOptions{Write: !c.DryRun, Existing: c.Existing, Dial: po.Dial, Silent: po.Silent}
	store, err := place.OpenStore(ctx, c.Store, so)
	switch {
	case err == nil && store.Fresh:
		t.Report(progress.Event{Type: "note", Kind: "store", Path: store.Text, Message: "a new store was made; --existing refuses to"})
	case c.DryRun && !c.Existing && errors.Is(err, place.ErrNoStore):
		t.Report(progress.Event{Type: "note", Kind: "store", Path: c.Store, Message: "there is no store: one would be made"})
		return nil, nil
	}
	return store, err
}
