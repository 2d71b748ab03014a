package daemon

import "time"

// The bounds of this package, and what happens at each. Those that an operator sets are in
// package config.
const (
	// maxPEM is the longest file of certificates, or of a key, in bytes; a longer one is
	// refused. All authorities that a distribution knows fit.
	maxPEM = 1 << 20

	// otherFiles is how many descriptors the process needs beside those of
	// clients and files: listeners, the log, state, what the runtime opens.
	otherFiles = 256

	// lockShare is the part of a directory's open files that one client may have for
	// locks. Beyond it a lock is refused; all clients together have half, of which
	// package localfs keeps some for clients that have few.
	lockShare = 4

	// localFiles is how many local I/O takes beyond those: two for each client of
	// this host, and what is on its way to them.
	localFiles = 1024

	// storeFiles is how many the store of content keeps open of its directories, and
	// what it has under way beside calls.
	storeFiles = 1024

	// handoverTime is how much longer than DrainTimeout a server waits, when it
	// begins, for another one that is ending to give up the state; handoverTick is how often it
	// looks. endingTime is how long it waits for one that serves to begin to end: a script that
	// signals one and starts the next does not wait in between. Then it does not begin.
	handoverTime = 5 * time.Second
	endingTime   = 3 * time.Second
	handoverTick = 20 * time.Millisecond

	// maxRefusals is how many lines the log has of refused calls in ledger.Pause (ten
	// seconds), of each kind. Beyond it, and of what a client repeats, calls are counted,
	// and the next line has the count.
	maxRefusals = 20

	// maxToldRules is how many rules of an export the log has at the start, and maxTold how
	// many bytes of what a stranger has sent. The rest is left out.
	maxToldRules = 8
	maxTold      = 512

	// maxRetired is how many directories that reloads have taken out of service
	// may still be open, because calls are at work in them. At the bound a
	// reload that retires one more is refused.
	maxRetired = 256

	// reloadEnd is how long the end waits for a reload that is under way. Beyond it
	// the process ends without it.
	reloadEnd = time.Second

	// upstreamTime bounds the first try to reach another server whose files are served. At the bound the start goes on
	// without it, if it has been reached before.
	upstreamTime = 5 * time.Second

	// apiEnd is how long calls of the file API that were cut off have to take away
	// what they have begun. What they leave is swept at the next start.
	apiEnd = 5 * time.Second

	// notifyTime bounds a message to the service manager.
	notifyTime = 2 * time.Second

	// maxWatchdog is the longest time between signs of life that a service manager may
	// ask for. If it asks for more it gets none.
	maxWatchdog = 3650 * 24 * time.Hour

	// maxInherited is how many listeners a service manager may hand over; more
	// is refused.
	maxInherited = 64
)
