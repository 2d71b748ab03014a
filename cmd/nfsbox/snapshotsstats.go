package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
)

type snapshotsStatsCmd struct {
	Store string `arg:"" place:"" name:"STORE" help:"The store, or with STORE::NAME[@ID] one snapshot of it."`
	Name  string `arg:"" optional:"" name:"NAME" help:"Count the snapshots of this name alone."`
	snapshotsFlags
	progressFlags
}

func (*snapshotsStatsCmd) Help() string {
	return `Says how much the snapshots of a store have, and how much of the store they need: of all of them, of those of one NAME, or
of one snapshot. All their manifests are read, and no file.

files is what a restore of each of the snapshots would bring, together, as their backups have counted: each name of a
file counts, and holes count. stored is what they need of the store, each object once, packed as it is; packs are the
objects that small files share. in no use is what no snapshot needs: nfsbox snapshots prune removes it. That is only
said of a whole store. ratio is how many times files is stored: it says what is saved by storing once what is the
same, and by packing.

A snapshot that cannot be read is named, with status 2, and the numbers are without it. It waits for a prune, and
holds back others, as a check does.

  nfsbox snapshots stats /backup
  nfsbox snapshots stats /backup home
  nfsbox snapshots stats --json /backup::home@20261128 | jq .restore_bytes`
}

// statsSummary is the event of snapshots stats.
type statsSummary struct {
	upkeep.StatsSummary
	Ratio   float64 `json:"ratio"`
	Errors  uint64  `json:"errors"`
	Seconds float64 `json:"seconds"`
}

func (c *snapshotsStatsCmd) Run(e *env) error {
	var sum statsSummary
	r := summedRun(e, c.JSON, func(errors uint64, seconds float64) any {
		sum.Errors, sum.Seconds = errors, seconds
		return &sum
	})
	store, name, path, one := place.Divide(place.Meant(c.Store))
	switch {
	case one && (path != "" || c.Name != ""):
		return r.refuse(c.Store, refused(fmt.Errorf("%q is neither a store nor a snapshot alone: give STORE, STORE NAME or STORE::NAME[@ID]", c.Store)))
	case !one:
		store = c.Store
	}
	o := place.StoreOptions{Reading: readingNoted(e, "snapshots stats", func(_, text string) { r.note(text) })}
	return c.lookWith(r, store, o, func(r *storeRun) error {
		so := upkeep.StatsOptions{Name: c.Name, Progress: c.tracker(r), Failed: func(what string, err error) { r.failed(what, fmt.Errorf("%s: %w", what, err)) }}
		if one {
			ref, err := r.store.Find(e.ctx, name)
			if err != nil {
				return err
			}
			so.Only = &ref
		}
		var err error
		sum.StatsSummary, err = upkeep.Stats(e.ctx, r.store, so)
		if sum.Bytes > 0 {
			sum.Ratio = float64(sum.RestoreBytes) / float64(sum.Bytes)
		}
		switch err = errors.Join(err, so.Progress.Finish(nil)); {
		case errors.Is(err, snapshot.ErrNoSnapshot):
			return r.missing([]string{c.Name}, err)
		case errors.Is(err, snapshot.ErrName):
			return refused(aboutStore(r.store, err))
		case err != nil:
			return aboutStore(r.store, err)
		}
		if !r.json {
			err = r.text(sum.text())
		}
		if err == nil && sum.Missing > 0 {
			err = &exitError{status: exitIncomplete}
		}
		return err
	})
}

// text is the numbers for people.
func (s *statsSummary) text() string {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s%s\n", name, value)
		}
	}
	row("snapshots", text(counted{s.Snapshots, "of " + text(counted{s.Trees, "name|names"})}, counted{s.Partials, "partial one|partial ones"}))
	row("files", text(counted{s.Names, "name|names"})+sizeText(s.Names, s.RestoreBytes))
	row("stored", text(counted{s.Objects, "object|objects"})+sizeText(s.Objects, s.Bytes))
	row("of it packs", text(counted{s.Packs, "pack|packs"})+sizeText(s.Packs, s.PackBytes))
	if s.Unused != nil {
		row("in no use", text(counted{*s.Unused, "object|objects"})+sizeText(*s.Unused, *s.UnusedBytes))
	}
	row("missing", text(counted{s.Missing, "object; nfsbox snapshots check says what it hurts|objects; nfsbox snapshots check says what they hurt"}))
	if s.Bytes > 0 {
		row("ratio", fmt.Sprintf("%.2f", s.Ratio))
	}
	return b.String()
}
