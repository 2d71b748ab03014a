package readahead

import "time"

const (
	// maxTransfer bounds a READ, whatever the server prefers. A server that names less than
	// minTransfer, or nothing, is asked for so much. Its replies may be short then, and the rest
	// is asked for again.
	maxTransfer = 1 << 20
	minTransfer = 4 << 10

	// DefaultFile bounds the memory for what is read ahead in one open file, and DefaultTotal that
	// in all files of an FS and its views. At either bound less is read ahead. At DefaultTotal,
	// what no reader has asked for in maxIdle is given up as well.
	DefaultFile  = 32 << 20
	DefaultTotal = 64 << 20 // bytes

	// maxIdle is how long a stream keeps what was read ahead for it while other streams have no
	// room. sweepPause is how often idle streams are looked for then.
	maxIdle    = time.Second
	sweepPause = 100 * time.Millisecond

	// maxFresh is how long bytes that were read ahead may be handed out. Older ones are read
	// again, as the file may have changed unnoticed.
	maxFresh = 30 * time.Second

	// maxStreams bounds the sequential readers that are told apart in one open file. One more
	// takes the place of the one that looks least like a sequential reader.
	maxStreams = 8

	// After firstRun sequential reads, reading ahead begins. If less than half of what was read
	// ahead for a stream was of use, that number doubles for the file, up to lastRun. Otherwise it
	// is halved.
	firstRun = 2
	lastRun  = 64

	// A stream whose reads have shown that reading ahead is of use begins with 1<<firstAhead READs
	// ahead, or with the better number that another stream has found.
	firstAhead = 1

	// A server is far if none of its READs has taken less than farRead. There reading ahead is
	// worth its copy in any case, and no look (cost.go) is needed.
	farRead = 20 * time.Millisecond
	// queuedAhead tells distance from a queue. A READ that takes up to queuedAhead times as long
	// as the quickest one has not waited for other READs.
	queuedAhead = 2

	// maxSplit bounds the READs in flight for one ReadAt. It begins with 1<<firstSplit.
	maxSplit   = 64
	firstSplit = 2
)
