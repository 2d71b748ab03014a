package readahead

import "time"

const (
	// maxTransfer bounds a READ, whatever the server prefers, and minTransfer is what a
	// server can carry that names nothing useful.
	maxTransfer = 1 << 20
	minTransfer = 4 << 10

	// DefaultFile bounds the memory for what is read ahead in one open file,
	// and DefaultTotal that in all files of an FS and its views. At the
	// bound less is read ahead; at the latter, what files have not asked for in
	// maxIdle is given up as well.
	DefaultFile  = 32 << 20
	DefaultTotal = 64 << 20 // bytes

	// maxIdle is how long a stream keeps what it has while others have no room,
	// and sweepPause how often these look for such.
	maxIdle    = time.Second
	sweepPause = 100 * time.Millisecond

	// maxFresh is how long bytes that were read ahead may be handed out. Older
	// ones are read again, as the file may have changed without a sign.
	maxFresh = 30 * time.Second

	// maxStreams bounds the sequential readers that are told apart in one open
	// file. One more takes the place of what looks least like one.
	maxStreams = 8

	// After firstRun sequential reads, reading ahead begins. Each stream whose
	// bytes were not used doubles the number for the file, up to lastRun, and each
	// whose bytes were halves it.
	firstRun = 2
	lastRun  = 64

	// A file begins with 1<<firstAhead READs ahead, once its reads have shown that they
	// are of use, unless another file of the server has found a better number.
	firstAhead = 1

	// farRead is how long every READ has to take until a server is far. There reading
	// ahead is worth its copy in any case, and no look is needed to know.
	farRead = 20 * time.Millisecond
	// queuedAhead tells distance from a queue: a READ that takes up to queuedAhead times
	// the quickest has not waited for other READs.
	queuedAhead = 2

	// maxSplit bounds the READs in flight for one ReadAt. It begins with 1<<firstSplit.
	maxSplit   = 64
	firstSplit = 2
)
