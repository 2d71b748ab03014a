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

	// maxBusyClients and maxBusyFiles bound the clients and files that are known to be
	// busy. At the bound one more takes the place of the one that has done least of late.
	// maxClients and maxFiles bound the rows of a Frame: those are shown that are first by
	// calls, bytes, latency, or calls in flight.
	maxBusyClients = 1024
	maxBusyFiles   = 1024
	maxClients     = 64
	maxFiles       = 64

	// samples is how many calls of an interval are looked at to tell clients and files
	// apart. Of more only a share is, down to leastShare, of 2^64.
	samples    = 1000
	leastShare = 1 << 44 // one in a million

	// halfLife is when a client or file counts half as much as it did, and tookHalf the
	// same of how long its calls took. What counts less than forgotten calls is forgotten.
	halfLife  = time.Minute
	tookHalf  = 15 * time.Second
	forgotten = 0.05

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
