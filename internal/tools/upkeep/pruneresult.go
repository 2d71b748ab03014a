package upkeep

import (
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot/lease"
)

// DefaultGrace is for how long what nothing needs is kept, if options do not say. The leases alone make a prune safe. This is for what no
// lease can see: a host that slept between the proof of its lease and the call that follows.
const DefaultGrace = time.Hour

// PruneOptions say what is removed.
type PruneOptions struct {
	DryRun bool // nothing is removed, and no lease is taken
	// All lets everything be removed if the store has no snapshot at all. Without it that is an error.
	All bool
	// Without, with DryRun alone, has snapshots count as forgotten: NAME@ID, or "partial NAME", as ForgetItem.Snapshot has them.
	Without map[string]bool
	// Lease says whose the exclusive lease is, and for how long others are waited for. Its Kind is set here.
	Lease lease.Options
	// Grace is how old, by the store's clock, an object has to be to be removed. 0 is DefaultGrace, below 0 is none.
	Grace    time.Duration
	Progress *progress.Tracker // nil: no reports. Files are objects that were removed, Bytes their sizes.
}

// PruneSummary is what a prune has done; with DryRun, what it would do.
type PruneSummary struct {
	DryRun    bool   `json:"dry_run"`
	Snapshots uint64 `json:"snapshots"` // that keep what they need
	Partials  uint64 `json:"partials"`  // likewise

	Objects uint64 `json:"objects"` // of content that the store had
	Bytes   uint64 `json:"bytes"`

	Removed      uint64 `json:"removed_objects"`
	RemovedBytes uint64 `json:"removed_bytes"`
	Young        uint64 `json:"young_objects"` // that nothing needs, and that stay for the grace
	YoungBytes   uint64 `json:"young_bytes"`

	// Missing is how many objects that snapshots need are not in the store. A check names what they hurt.
	Missing uint64 `json:"missing_objects"`
}
