package view

import "time"

// The bounds of this package, and what happens at each.
const (
	// DefaultEvery is the time from one Frame to the next, if Options do not say.
	DefaultEvery = 2 * time.Second

	// maxPoints bounds the points of the charts: ten minutes at DefaultEvery. At the
	// bound the oldest is dropped.
	maxPoints = 300

	// maxProcs, maxLanes, maxLimits, maxCaches and maxJobs bound the rows of a Frame's
	// tables. Further lanes are added up under the name others; other rows are left out,
	// and counted by Frame.Left.
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

	// writeTime is the timeout of a reader that receives an answer; then its connection
	// is closed.
	writeTime = 10 * time.Second
)

// others is the row of all lanes without a row of their own.
const others = "others"
