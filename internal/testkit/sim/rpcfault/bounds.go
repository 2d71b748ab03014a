package rpcfault

import "time"

const (
	// MaxRecord is the longest record, in bytes, either way. A longer one
	// closes the connection; it is counted in Stats.Malformed.
	MaxRecord = 16 << 20

	// maxEmpty is how many empty fragments may follow each other. More close the
	// connection, as a record that is too long does.
	maxEmpty = 1024

	// growStep bounds how much memory an announced length costs before its
	// bytes have come.
	growStep = 64 << 10

	// maxPending is how many calls of a connection are remembered until their
	// replies come. The replies of those above are passed on without faults.
	maxPending = 4096

	// maxLate is how many messages of one direction of a connection may wait.
	// Those above do not wait.
	maxLate = 1024

	// maxConns is how many connections are held at once. Those above are
	// closed as they come.
	maxConns = 1024

	// DefaultReorderWait is how long a reply waits to be overtaken, if its
	// Fault does not say.
	DefaultReorderWait = 50 * time.Millisecond

	// acceptPause is the wait after an Accept that failed and may go well the
	// next time: out of descriptors, most likely.
	acceptPause = 10 * time.Millisecond
)
