package daemon

import "time"

// The bounds of this package, and what happens at each. Those that a Config sets
// are described there; these are their defaults.
const (
	defaultGrace            = 45 * time.Second // a client of Linux notices a restart within 30 s
	defaultDrain            = 10 * time.Second
	defaultMaxOpenFiles     = 4096
	defaultMaxRequestBytes  = 128 << 20
	defaultMaxReplyBytes    = 128 << 20
	defaultRepliesPerClient = 4096
	defaultRepliesKeep      = time.Minute
	defaultRepliesBytes     = 64 << 20

	defaultAPIIdle = 30 * time.Second
	defaultAPICall = 24 * time.Hour

	// minAPIMemory is the least memory for the file API's messages: one of the
	// largest costs about three times its bytes. Less is refused.
	minAPIMemory = 8 << 20

	// maxPEM is the longest file of certificates, or of a key, in bytes; a longer one is
	// refused. All authorities that a distribution knows fit.
	maxPEM = 1 << 20

	// maxConfig is the longest configuration file, in bytes; a longer one is
	// refused. 4096 exports with a few clients each fit.
	maxConfig = 4 << 20

	// maxListen is how many addresses a Config may name, and maxRules how many
	// clients an export may tell apart. More is refused.
	maxListen = 64
	maxRules  = 4096

	// maxNumber bounds the numbers of a Config: connections, threads, files.
	// More is refused, as a slip of the keyboard.
	maxNumber = 1 << 24

	// maxTime bounds the times of a Config.
	maxTime = 3650 * day

	// otherFiles is how many descriptors the process needs beside those of
	// clients and files: listeners, the log, state, what the runtime opens.
	otherFiles = 256

	// minOpenFiles is the least that a directory may keep open, however many there are
	// and however few the process may: with less it could not serve.
	minOpenFiles = 16

	// lockShare is the part of a directory's open files that one client may have for
	// locks. Beyond it a lock is refused; all clients together have half, of which
	// package localfs keeps some for those who come later.
	lockShare = 4

	// localFiles is how many local I/O takes beyond those: two for each client of
	// this host, and what is on its way to them.
	localFiles = 1024

	// storeFiles is how many the store of content keeps open of its directories, and
	// what it has under way beside calls.
	storeFiles = 1024

	// handoverTime is how much longer than DrainTimeout a server waits, when it
	// begins, for another one to give up the state; handoverTick is how often it
	// looks. Then it does not begin.
	handoverTime = 5 * time.Second
	handoverTick = 20 * time.Millisecond

	// maxRetired is how many directories that reloads have taken out of service
	// may still be open, because calls are at work in them. At the bound a
	// reload that retires one more is refused.
	maxRetired = 256

	// reloadEnd is how long the end waits for a reload that is under way. Beyond it
	// the process ends without it.
	reloadEnd = time.Second

	// apiEnd is how long calls of the file API that were cut off have to take away
	// what they have begun. What they leave is swept at the next start.
	apiEnd = 5 * time.Second

	// slowFloor is the least threshold for slow calls: what is faster is not even
	// looked at.
	slowFloor = time.Millisecond

	// maxSlowBytes is how much a call of the file API may move to be counted as slow.
	// One that moved more is not, however long it took.
	maxSlowBytes = 1 << 20

	// slowLines is how many slow calls the log tells of in one slowWindow; the
	// others are counted. slowQueue is how many wait for the log to take them;
	// what does not fit is counted, too.
	slowLines  = 20
	slowWindow = 10 * time.Second
	slowQueue  = 64

	// defaultSample, defaultLogSize and defaultLogFiles are what [Log] begins with:
	// a busy server then writes some hundred lines a second, and keeps a gigabyte.
	defaultSample   = 100
	defaultLogSize  = 100 << 20
	defaultLogFiles = 10

	// maxSample bounds how rarely a request is logged. More is refused, as a slip
	// of the keyboard.
	maxSample = 1_000_000_000

	// logUnit is the unit of a log file's size, and day that of its age.
	logUnit = 1 << 20
	day     = 24 * time.Hour

	// httpTime bounds how long a request for metrics may take to arrive.
	// httpEnd bounds what is under way at the end; then it is cut off. maxHead is
	// the longest head of a request.
	httpTime = 10 * time.Second
	httpEnd  = time.Second
	maxHead  = 16 << 10

	// maxHTTP is how many connections each of the servers for operators has. One
	// more takes the place of one of the client that has most, or is closed: see
	// package crowd.
	maxHTTP = 64

	// maxScrapes is how many may read metrics at once; others are told 503.
	maxScrapes = 4

	// maxLabels is how many exports, and directories, have metrics of their
	// own. The others are counted together, as "others".
	maxLabels = 64

	// notifyTime bounds a message to the service manager.
	notifyTime = 2 * time.Second

	// maxInherited is how many listeners a service manager may hand over; more
	// is refused.
	maxInherited = 64
)
