package config

import "time"

// The defaults of what a Config says. What happens at each bound stands there.
const (
	defaultGrace            = 45 * time.Second // LeastGrace, and time to claim
	defaultDrain            = 10 * time.Second
	defaultMaxOpenFiles     = 4096
	defaultMaxRequestBytes  = 128 << 20
	defaultMaxReplyBytes    = 128 << 20
	defaultRepliesPerClient = 4096
	defaultRepliesKeep      = time.Minute
	defaultRepliesBytes     = 64 << 20

	defaultAPIIdle = 30 * time.Second
	defaultAPICall = 24 * time.Hour

	// A busy server then logs some hundred requests a second, and keeps a gigabyte.
	defaultSample   = 100
	defaultLogSize  = 100 << 20
	defaultLogFiles = 10
)

// LeastGrace is how long clients may take to notice a restart: nfsbox's own looks every 10 s, and TCP
// may pause for 16 s before it tries a host that was silent again. A shorter Config.Grace is a warning.
const LeastGrace = 30 * time.Second

// The bounds of values. What is beyond is refused, with its line or flag.
const (
	// minAPIMemory is the least memory for the file API's messages: one of the
	// largest costs about three times its bytes.
	minAPIMemory = 8 << 20

	// maxConfig is the longest configuration file, in bytes. 4096 exports with a few
	// clients each fit.
	maxConfig = 4 << 20

	// maxWrongKinds is how many values of the wrong kind of TOML are told of. Each has the
	// file read once more; at the bound the search ends.
	maxWrongKinds = 32

	// maxListen is how many addresses a list may name, and maxRules how many clients an
	// export may tell apart.
	maxListen = 64
	maxRules  = 4096

	// maxEntries bounds a number of names. More is a typing error.
	maxEntries = 1<<31 - 1
	// maxNumber bounds numbers of connections, threads and files. More is a typing error.
	maxNumber = 1 << 24

	// maxTime bounds times.
	maxTime = 3650 * day

	// MinOpenFiles is the fewest descriptors that a directory may keep open. With fewer
	// it could not serve.
	MinOpenFiles = 16

	// SlowFloor is the least threshold for slow calls. Faster calls are never looked at.
	SlowFloor = time.Millisecond

	// maxSample bounds how rarely a request is logged. More is a typing error.
	maxSample = 1_000_000_000

	// logUnit is the unit of a log file's size, and day that of its age.
	logUnit = 1 << 20
	day     = 24 * time.Hour
)
