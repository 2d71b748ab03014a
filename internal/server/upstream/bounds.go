package upstream

import "time"

const (
	// firstPause and maxPause are those between two tries to connect. A pause is twice the one before it.
	firstPause = time.Second
	maxPause   = 15 * time.Second
	// tryTime bounds one try of Persist.
	tryTime = 30 * time.Second

	// probeEntries bounds the names whose handles are measured after a connection. At the bound the
	// rest is found when it is met: a handle that is too long is then vfs.ErrBadHandle.
	probeEntries = 256
	// maxMet bounds the look-ups of our own that are remembered to have gone around. At the bound others count as not
	// seen.
	maxMet = 64

	// maxKept bounds the files that are kept open, and maxLast the versions that are remembered of files. At the bound a
	// file is closed after its READ, and the version that chance picks is forgotten.
	maxKept = 1024
	maxLast = 8192
	// keepIdle is how long a file is kept open that nobody reads.
	keepIdle = 3 * time.Second
)
