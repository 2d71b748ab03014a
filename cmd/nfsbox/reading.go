package main

import (
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// reading has prunes of other hosts keep the snapshots that a command reads at length. Its notes go to t.
func reading(e *env, t *progress.Tracker, verb string) *place.Reading {
	return readingNoted(e, verb, func(kind, text string) { t.Report(progress.Event{Type: "note", Kind: kind, Message: text}) })
}

// readingNoted is reading for a command with notes of its own.
func readingNoted(e *env, verb string, note func(kind, text string)) *place.Reading {
	return place.NewReading("nfsbox "+verb, randReader(e.rand), note)
}

// reading is that of a copy. One that only says what it would do leaves nothing in a store, and reads for a short time.
func (c *cpCmd) reading(e *env, t *progress.Tracker) *place.Reading {
	if c.DryRun {
		return nil
	}
	return reading(e, t, c.verb())
}
