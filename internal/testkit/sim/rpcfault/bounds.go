package rpcfault

import "time"

const (
	// MaxRecord bounds a record, in bytes, in either direction. A longer one closes the connection,
	// and is counted in Stats.Malformed.
	MaxRecord = 16 << 20

	// maxEmpty bounds the empty fragments in a row. At the bound the connection is closed, as for a
	// record that is too long.
	maxEmpty = 1024

	// growStep bounds how much memory an announced length costs before its
	// bytes have come.
	growStep = 64 << 10

	// maxPending bounds the calls of a connection that are remembered until their replies come. At
	// the bound replies to further calls are passed on without faults.
	maxPending = 4096

	// maxLate bounds the waiting messages of one direction of a connection. At the bound further ones
	// do not wait.
	maxLate = 1024

	// maxConns bounds the connections. At the bound new ones are closed at once.
	maxConns = 1024

	// DefaultReorderWait is how long a reply waits to be overtaken, unless its Fault says otherwise.
	DefaultReorderWait = 50 * time.Millisecond

	// acceptPause is the wait after an Accept that failed with a temporary error, such as a lack of
	// descriptors.
	acceptPause = 10 * time.Millisecond
)
