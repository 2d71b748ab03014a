package writeback

import "time"

const (
	// DefaultMaxDirty bounds the memory for bytes that are not yet known to be
	// stable, over all files of an FS and its views. At the bound WriteAt
	// commits, the caller's file first, and blocks until there is room. What
	// cutting a piece in two copies may exceed it by one WRITE's size a file.
	DefaultMaxDirty = 64 << 20

	// maxInFlight bounds the WRITEs of one object that are in flight; more
	// pieces queue.
	maxInFlight = 8

	// maxWrite bounds a WRITE, whatever the server prefers, and minWrite is
	// what a server can take that names nothing useful.
	maxWrite = 1 << 20
	minWrite = 4 << 10

	// maxRounds bounds how often one Commit sends bytes again because the
	// verifier changed. A server that restarts more often than this during one
	// commit does not store anything, and Commit fails.
	maxRounds = 8

	// maxEvictions bounds the commits of one WriteAt in search of room: other
	// writers may take it first. Beyond it WriteAt is ErrBusy.
	maxEvictions = 1000

	// sendLifetime bounds a WRITE in flight, which no caller can cancel. The FS
	// below repeats and reconnects within it; beyond it the WRITE has failed.
	sendLifetime = 10 * time.Minute

	// closeLifetime bounds the Close below after the caller's context has ended.
	closeLifetime = 5 * time.Second
)
