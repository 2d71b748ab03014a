package main

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

// readWait is how long a command that reads a snapshot waits for a prune that is under way: a little longer than one counts that
// was killed. Then it reads without a lease.
const readWait = lease.Life + time.Minute

// reading has prunes of other hosts keep the snapshots that a command reads at length. Its notes go to t.
func reading(e *env, t *progress.Tracker, verb string) *place.Reading {
	return readingNoted(e, verb, func(kind, text string) { t.Report(progress.Event{Type: "note", Kind: kind, Message: text}) })
}

// readingNoted is reading for a command with notes of its own.
func readingNoted(e *env, verb string, note func(kind, text string)) *place.Reading {
	o := leaseOf(e, "nfsbox "+verb)
	o.Wait = readWait
	return &place.Reading{Lease: o, Note: note}
}

// reading is that of a copy. One that only says what it would do leaves nothing in a store, and reads for a short time.
func (c *cpCmd) reading(e *env, t *progress.Tracker) *place.Reading {
	if c.DryRun {
		return nil
	}
	return reading(e, t, c.verb())
}
