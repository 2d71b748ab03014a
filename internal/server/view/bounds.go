package view

import "time"

// The bounds of this package, and what happens at each.
const (
	// DefaultEvery is the time from one Frame to the next where Options do not
	// say.
	DefaultEvery = 2 * time.Second

	// maxPoints is how many points the charts have: ten minutes at DefaultEvery.
	// An older one makes room for the next.
	maxPoints = 300

	// maxProcs, maxLanes, maxLimits, maxCaches and maxJobs are how many rows each
	// of a Frame's tables has. Lanes beyond are added up under the name others;
	// what else is beyond is left out, and Frame.Left counts it.
	maxProcs  = 128
	maxLanes  = 256
	maxLimits = 32
	maxCaches = 32
	maxJobs   = 64

	// maxName is the longest name in a Frame, in bytes; the end of a longer one
	// is replaced by an ellipsis.
	maxName = 200

	// slowest is how many slow calls are kept of each slowWindow, and shown of
	// this one and the last. A faster call makes room for a slower one.
	slowest    = 32
	slowWindow = 5 * time.Minute

	// writeTime is how long a reader may take to take an answer; then its
	// connection is closed.
	writeTime = 10 * time.Second
)

// others is the name of what has no row of its own.
const others = "others"
