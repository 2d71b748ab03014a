package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

// snapshotsCmd is about the snapshots of a store.
type snapshotsCmd struct {
	Ls   snapshotsLsCmd   `cmd:"" help:"List the snapshots, the newest last."`
	Show snapshotsShowCmd `cmd:"" help:"Show all that a snapshot says of itself."`
	Diff snapshotsDiffCmd `cmd:"" help:"Compare two snapshots by their manifests alone."`

	Stats snapshotsStatsCmd `cmd:"" help:"Say how much snapshots have, and how much of the store they need."`

	Check  snapshotsCheckCmd  `cmd:"" help:"Look whether all is there that the snapshots need, and right."`
	Forget snapshotsForgetCmd `cmd:"" help:"Remove snapshots that no rule keeps."`
	Prune  snapshotsPruneCmd  `cmd:"" help:"Remove from the store what no snapshot needs."`
}

func (*snapshotsCmd) Help() string {
	return `Looks at the snapshots that nfsbox backup has made in a store, and keeps them in order. STORE is a directory of
this host or of a server (nfs://), or a part of a bucket (s3://). A snapshot is STORE::NAME@ID; STORE::NAME is the
newest complete one of that name. Of ID the beginning will do, from 4 characters on, if one snapshot of NAME alone has
it: home@20261127 is that of a day on which there was one.

ls lists them, show says all of one, diff compares two, stats says how much they take. What is in a snapshot the commands show that show
trees: nfsbox ls, stat, cat, find, du and verify take STORE::NAME/PATH as a place; nfsbox restore brings it back.

check looks whether a store is whole, forget removes snapshots by rules, and prune what no snapshot needs any more.

An incomplete snapshot, in which something of the tree is missing, is listed as such. It stands for NAME nowhere: name it
with its ID.

  nfsbox snapshots ls /backup
  nfsbox snapshots show /backup::home
  nfsbox snapshots diff /backup::home@20261128t230000.000z /backup::home
  nfsbox snapshots forget --keep-daily 7 --keep-weekly 5 /backup
  nfsbox snapshots prune /backup
  nfsbox snapshots check /backup`
}

// snapshotsFlags are those of commands that open a store.
type snapshotsFlags struct {
	JSON bool `help:"Print one line of JSON for each, then a summary."`
	clientFlags
}

// storeRun is a command that looks at a store, under way.
type storeRun struct {
	*output
	e     *env
	store *place.Store
	waits bool                    // for a store that somebody else has
	held  string                  // what to do about a store that somebody else has; "": nothing but to run it again
	sum   func(errors uint64) any // makes the last event; nil: it is a listSummary
}

// summedRun is a run that begins now, and whose last event is what sum makes of the errors that were reported, and of how long it took.
func summedRun(e *env, asJSON bool, sum func(errors uint64, seconds float64) any) *storeRun {
	began := time.Now()
	return &storeRun{output: newOutput(e, asJSON), e: e, sum: func(errors uint64) any { return sum(errors, time.Since(began).Seconds()) }}
}

// done ends the command.
func (r *storeRun) done(err error) error {
	if !r.json || r.sum == nil {
		return r.end(err)
	}
	if err := r.event("summary", r.sum(r.errors)); err != nil {
		return err
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err == nil && r.errors > 0 {
		return &exitError{status: exitIncomplete} // each has been reported
	}
	return err
}

// look opens a store and calls do with it. An error of the store is told of what was typed for it.
func (f *snapshotsFlags) look(e *env, arg string, o place.StoreOptions, do func(*storeRun) error) error {
	return f.lookWith(&storeRun{output: newOutput(e, f.JSON), e: e}, arg, o, do)
}

// lookWith is look, for a run that is made already.
func (f *snapshotsFlags) lookWith(r *storeRun, arg string, o place.StoreOptions, do func(*storeRun) error) error {
	e := r.e
	defer f.print(e)
	po, err := f.place(false)
	if err != nil {
		return r.refuse(arg, err)
	}
	po = r.watch(e, po)
	o.Dial, o.Silent = po.Dial, po.Silent
	if r.store, err = r.openStore(arg, o); err != nil {
		return r.refuse(arg, err)
	}
	err = do(r)
	if cerr := r.store.Close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("the store %s: %w", arg, cerr))
	}
	if broken, ok := errors.AsType[*outputError](err); ok {
		return broken
	}
	if err != nil && !told(err) {
		return r.refuse(arg, err)
	}
	return r.done(err)
}

const (
	// askAgain is how often a store is tried that somebody else has, by a command that waits for it.
	askAgain = time.Second
	// maxAsked bounds how often: for a day.
	maxAsked = 24 * 60 * 60
)

// openStore opens the store. A command that waits does so until nobody else has it.
func (r *storeRun) openStore(arg string, o place.StoreOptions) (*place.Store, error) {
	for asked := 0; ; asked++ {
		s, err := place.OpenStore(r.e.ctx, arg, o)
		if !r.waits || !errors.Is(err, object.ErrBusy) || asked == maxAsked {
			return s, r.heldBy(err)
		}
		if asked == 0 {
			r.note("waiting: " + err.Error())
		}
		select {
		case <-time.After(askAgain):
		case <-r.e.ctx.Done():
			return nil, r.e.ctx.Err()
		}
	}
}

// heldBy adds what to do to the error of a store that somebody else has.
func (r *storeRun) heldBy(err error) error {
	switch {
	case r.held == "":
	case place.InUse(err):
		return &advised{err, r.held}
	case errors.Is(err, lease.ErrHeld):
		return &advised{err, r.held + ". What was killed counts for ten minutes"}
	}
	return err
}

// refuse ends a command that an argument has failed.
func (r *storeRun) refuse(arg string, err error) error {
	if r.e.ctx.Err() != nil {
		r.errors++
		return r.done(err)
	}
	r.failed(arg, err)
	switch {
	case errors.Is(err, object.ErrBusy): // it can be reached, but not now
		return r.done(&exitError{status: exitIncomplete})
	case place.Lost(err):
		return r.done(&exitError{status: exitUnreachable})
	}
	return r.done(worse(nil, err))
}

// aboutStore adds the store to an error of it.
func aboutStore(s *place.Store, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Text, err)
}

type snapshotsLsCmd struct {
	Store string `arg:"" place:"" name:"STORE" help:"The store: a directory of this host or of a server, or s3://BUCKET/PREFIX."`
	Name  string `arg:"" optional:"" name:"NAME" help:"List those of this name alone."`
	snapshotsFlags
}

func (*snapshotsLsCmd) Help() string {
	return `Lists the snapshots of a store, the newest last: when each was begun, NAME@ID, whether it is complete, its files and
bytes, tags, and the host and place of which it was taken. INCOMPLETE is one in which something is missing that could not
be read; partial is what a backup has stored that was stopped, is under way, or ended incomplete: the next one of its
name goes on with it, and reads none of that again. It goes when one is complete, or by forget --partial. Its files and
bytes are not counted ("-"). One whose root object is damaged, or may not be read, is named, with status 2, and so is
what else lies in the place of one; the others are listed.

  nfsbox snapshots ls /backup
  nfsbox snapshots ls /backup home
  nfsbox snapshots ls --json /backup | jq -r 'select(.complete).snapshot'`
}

// snapshotEvent is a snapshot in JSON.
type snapshotEvent struct {
	Snapshot  string            `json:"snapshot"` // NAME@ID; "partial NAME"
	Name      string            `json:"name"`
	ID        string            `json:"id,omitempty"`
	Begun     time.Time         `json:"begun"`
	Host      string            `json:"host,omitempty"`
	Source    string            `json:"source,omitempty"`
	Tags      []string          `json:"tags"`
	Complete  bool              `json:"complete"`
	Partial   bool              `json:"partial"`
	Looked    *snapshot.Looked  `json:"looked,omitempty"`
	TimeDelta time.Duration     `json:"time_delta"`
	Counts    map[string]uint64 `json:"counts"`
}

func snapshotOf(ref *snapshot.Ref) *snapshotEvent {
	return &snapshotEvent{
		Snapshot: ref.Text(), Name: ref.Name, ID: ref.ID, Begun: ref.Time.UTC(), Host: ref.Host, Source: ref.Source, Tags: append([]string{}, ref.Tags...),
		Complete: ref.Complete, Partial: ref.Partial, Looked: ref.Looked, TimeDelta: ref.TimeDelta, Counts: ref.Counts,
	}
}

// maxListed bounds the snapshots that are listed, as all are sorted by their times. It is what package snapshot bounds
// its lists by.
const maxListed = 1 << 16

func (c *snapshotsLsCmd) Run(e *env) error {
	return c.look(e, c.Store, place.StoreOptions{}, func(r *storeRun) error {
		var refs []snapshot.Ref
		for ref, err := range snapshot.Each(e.ctx, r.store, c.Name) {
			switch {
			case err != nil && snapshot.IsOwn(err) && ref.Name != "":
				r.failed(ref.Text(), fmt.Errorf("%s: %w", ref.Text(), err))
				continue
			case errors.Is(err, snapshot.ErrName):
				return refused(err)
			case err != nil:
				return aboutStore(r.store, err)
			case len(refs) == maxListed:
				return refused(fmt.Errorf("the store has more than %d snapshots: name one", maxListed))
			}
			refs = append(refs, ref)
		}
		if c.Name != "" && len(refs) == 0 && r.errors == 0 {
			_, err := r.store.Find(e.ctx, c.Name)
			return err
		}
		slices.SortFunc(refs, func(a, b snapshot.Ref) int {
			return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
		})
		return r.list(refs)
	})
}

// list prints snapshots, in columns.
func (r *storeRun) list(refs []snapshot.Ref) error {
	width := 0
	for i := range refs {
		width = max(width, len(refs[i].Text()))
	}
	for i := range refs {
		ref := &refs[i]
		if r.json {
			if err := r.event("snapshot", snapshotOf(ref)); err != nil {
				return err
			}
			continue
		}
		line := fmt.Sprintf("%s  %-*s  %-10s  %10s  %10s", ref.Time.Local().Format(time.DateTime), width, ref.Text(), standingOf(ref),
			countOf(ref, "files", progress.Count), countOf(ref, "bytes", progress.Size))
		for _, more := range []string{strings.Join(ref.Tags, ","), fromOf(ref)} {
			if more != "" {
				line += "  " + progress.Clean(more)
			}
		}
		if err := r.text(line + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// countOf is what was counted when a snapshot was taken; "-" if that was not done.
func countOf(ref *snapshot.Ref, what string, text func(uint64) string) string {
	n, ok := ref.Counts[what]
	if !ok {
		return "-"
	}
	return text(n)
}

// standingOf says whether a snapshot is complete.
func standingOf(ref *snapshot.Ref) string {
	switch {
	case ref.Partial:
		return "partial"
	case ref.Complete:
		return "complete"
	}
	return "INCOMPLETE"
}

// fromOf is of what a snapshot was taken.
func fromOf(ref *snapshot.Ref) string {
	if ref.Host == "" || place.IsURL(ref.Source) {
		return ref.Source
	}
	return ref.Host + ":" + ref.Source
}

type snapshotsShowCmd struct {
	Snapshot string `arg:"" place:"" name:"STORE::NAME[@ID]" help:"The snapshot; without @ID the newest complete one of that name."`
	snapshotsFlags
}

func (*snapshotsShowCmd) Help() string {
	return `Shows all that a snapshot says of itself: when it was begun, where and of what, its tags, whether it is complete, and
what was counted.

  nfsbox snapshots show /backup::home
  nfsbox snapshots show --json /backup::home@20261128t230000.000z`
}

func (c *snapshotsShowCmd) Run(e *env) error {
	store, name, path, ok := place.DivideText(c.Snapshot)
	if !ok || path != "" {
		return newOutput(e, c.JSON).fail(e, c.Snapshot, notASnapshot(c.Snapshot))
	}
	return c.look(e, store, place.StoreOptions{}, func(r *storeRun) error {
		ref, err := r.store.Find(e.ctx, name)
		if err != nil {
			return err
		}
		if r.json {
			return r.event("snapshot", snapshotOf(&ref))
		}
		return r.text(showText(&ref))
	})
}

// notASnapshot is of an argument that should name a snapshot.
func notASnapshot(arg string) error {
	return refused(fmt.Errorf("%q names no snapshot: give STORE::NAME or STORE::NAME@ID, as in /backup::home", arg))
}

// lookedText says what of an object was looked for beside its attributes.
func lookedText(l *snapshot.Looked) string {
	if l == nil {
		return ""
	}
	var all []string
	for _, x := range []struct {
		is   bool
		what string
	}{{l.ACLs, "access control lists"}, {l.Xattrs && !l.Privileged, "extended attributes that users are shown"}, {l.Xattrs && l.Privileged, "extended attributes"},
		{l.Xattrs && !l.Special, "those of symbolic links and special files not"}} {
		if x.is {
			all = append(all, x.what)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "neither access control lists nor extended attributes")
}

// showText is a snapshot for people.
func showText(ref *snapshot.Ref) string {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s%s\n", name, progress.Clean(value))
		}
	}
	row("snapshot", ref.Text())
	row("begun", ref.Time.Local().Format("2006-01-02 15:04:05.000 -0700"))
	row("host", ref.Host)
	row("source", ref.Source)
	row("tags", strings.Join(ref.Tags, ", "))
	state := "complete"
	if !ref.Complete {
		state = "INCOMPLETE: something that could not be read is not in it"
	}
	row("state", state)
	row("looked for", lookedText(ref.Looked))
	row("time delta", ref.TimeDelta.String())
	for _, name := range slices.Sorted(maps.Keys(ref.Counts)) {
		n := progress.Count(ref.Counts[name])
		if strings.Contains(name, "bytes") {
			n = progress.Size(ref.Counts[name])
		}
		row(strings.ReplaceAll(name, "_", " "), n)
	}
	return b.String()
}
