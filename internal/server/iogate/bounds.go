package iogate

import "time"

const (
	// DefaultThreads is how many calls may block at once if Options do not say:
	// enough to keep a solid-state disk's queue filled, few enough that their
	// threads cost nothing to speak of.
	DefaultThreads = 32

	// MinThreads and MaxThreads bound Options.Threads: a place for each class,
	// and half of the threads at which the Go runtime ends the process.
	MinThreads = int(Classes)
	MaxThreads = 5000 // of Go's 10,000

	// DefaultQueue is how many may wait if Options do not say. A call that comes when so
	// many wait gets ErrFull at once.
	DefaultQueue = 8192

	// DefaultPatience is how long one may wait if Options do not say; then it is
	// ErrFull. NFS clients are told to come back later, and Linux ones sleep for
	// 5 s before they do.
	DefaultPatience = 2 * time.Second
)

const (
	// keptShare is the part of all places that is kept for lanes that use less
	// than theirs: one in so many, in equal parts for all lanes. Where that is
	// less than a place for each lane, exports share what is kept.
	keptShare = 2

	// maxCells bounds how many exports have places of their own kept, and thus
	// what an entry through the queue has to add up.
	maxCells = 16

	// lastShare is the part of the queue that only clients use that have nothing
	// waiting in the lane yet: one place in so many. Nobody can fill the queue
	// alone.
	lastShare = 8

	// maxSpare is how many waiters, and clients of a lane, are kept to be used
	// again. What is more is garbage.
	maxSpare = 1024
)

const (
	// nowaitRaw is the longest read without blocking that is made without
	// telling the scheduler: copying so much takes less time than it does to
	// hand a processor over.
	nowaitRaw = 64 << 10

	// nowaitPerCPU bounds reads without blocking that are under way, for each
	// processor. They do block a little, when they start a readahead; a call that finds
	// so many takes the way through the gate.
	nowaitPerCPU = 2

	// nowaitRetry is how many reads are not tried without blocking once a file
	// system has said that it cannot do that.
	nowaitRetry = 1024
)

// WaitBuckets is the number of counters of Lane.Waits.
const WaitBuckets = 24
