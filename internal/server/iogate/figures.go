package iogate

import "time"

// Snapshot is what a gate does and has done, at one time.
type Snapshot struct {
	Kind   Kind   // in force
	Asked  Kind   // by Options
	Reason string // why Kind is not Asked; empty if it is

	Bound   int // Options.Threads
	Threads int // of the kind's own, as far as they are known
	Inside  int // have a place
	Waiting int // wait for one

	// Priority is how many threads have real-time priority, Pinned how many are
	// bound to a processor, and Note says why they are less than was asked.
	Priority, Pinned int
	Note             string

	// Reads without blocking: those that found all in memory, those that did
	// not, and those not tried, because the file system cannot do it or too many
	// were at it.
	Hits, Misses, Untried uint64

	Exports []Export
}

// Export is the part of one export in a Snapshot.
type Export struct {
	Name  string
	Lanes [Classes]Lane
}

// Lane is the part of one class of one export in a Snapshot.
type Lane struct {
	Inside, Waiting int
	Entered         uint64 // places given, with waiting or without
	Full            uint64 // ErrFull because the queue was
	Late            uint64 // ErrFull because the wait was too long
	Cancelled       uint64 // the context ended during the wait

	// Waits counts calls that waited and got a place: Waits[i] those that waited for less
	// than WaitBound(i), and not less than WaitBound(i-1). Waited is the sum of all.
	Waits  [WaitBuckets]uint64
	Waited time.Duration
}

// WaitBound is the upper bound of Lane.Waits[i]: a microsecond, doubled i times.
// What is above the bound of the last one is counted there as well.
func WaitBound(i int) time.Duration { return time.Microsecond << i }

// Refused is how many got ErrFull.
func (l *Lane) Refused() uint64 { return l.Full + l.Late }

// threads are what a kind has of its own.
type threads struct {
	n                int
	priority, pinned int
	note             string
}
