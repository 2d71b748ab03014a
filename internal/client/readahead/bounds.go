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
	DefaultTotal = 64 << 20

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

	// firstRun is how many reads in a row begin to read ahead. Each stream whose
	// bytes were not used doubles the number for the file, up to lastRun, and each
	// whose bytes were halves it.
	firstRun = 2
	lastRun  = 64

	// firstAhead is how many READs ahead a file begins with once it has shown
	// that they are of use, as a power of two, where no other file has found out.
	firstAhead = 1

	// farRead is how long every READ has to take until a server is far. There reading
	// ahead is worth its copy in any case, and no look is needed to know.
	farRead = 20 * time.Millisecond
	// queuedAhead is how many times as long as the quickest READ one may take that does
	// not wait for others, but for the distance.
	queuedAhead = 2

	// maxSplit bounds the READs in flight for one ReadAt, where so many pay;
	// firstSplit is with how many it begins, as a power of two.
	maxSplit   = 64
	firstSplit = 2
)
