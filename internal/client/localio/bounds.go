package localio

import "time"

const (
	// maxFiles bounds the descriptors that are held at once, where neither
	// Options.MaxFiles nor the server says less, and fileShare is the part of what
	// the process may open (RLIMIT_NOFILE), one divided by it, that they may be. At
	// the bound an idle one is given back; if all are in use, further files are read
	// and written over the network, as they are when more than as many again are
	// still to be synced and closed.
	maxFiles  = 1024
	fileShare = 4

	// idleShare is the part of the bound, one divided by it, that descriptors may
	// be of which no file is open, so that files that are opened again cost nothing.
	// The one that has been idle for longest goes. idleTime is how long one is kept:
	// what another program has removed keeps its space for as long.
	idleShare = 2
	idleTime  = 10 * time.Second

	// openWait is how long a read or write waits for a descriptor that was asked
	// for. Then it goes over the network, and those behind it until the descriptor
	// has come. requireWait is how long it waits where the network is not allowed, and
	// asks again for what was taken back; then the call fails.
	openWait    = 100 * time.Millisecond
	requireWait = 30 * time.Second

	// crowdedTime is how long a file stays remote that found no room for a
	// descriptor, with the server or here.
	crowdedTime = time.Second

	// refusedTime is how long a file stays remote that the server has refused to
	// hand out: rights change, and so do exports. A shorter time is for files that
	// are not open, of which nothing is remembered; where the reason is what the
	// server exports, or our user, it is the session's.
	refusedTime = 30 * time.Second

	// maxOpensAhead bounds the files that were asked for and not answered yet. At
	// the bound further ones are remote for crowdedTime.
	maxOpensAhead = 256

	// maxStrangers bounds the callers of whom is known that the server does not
	// believe this process to be them. At the bound all are forgotten, and asked
	// for again.
	maxStrangers = 1024

	// maxRemembered bounds the objects without open files of which is known that
	// unstable bytes are with the server, or that some were lost. At the bound all
	// are forgotten and the verifier of every object changes, so that every file with
	// uncommitted bytes writes them again.
	maxRemembered = 1024
)

const (
	// maxBlocked bounds the threads that all files of an FS may have in reads,
	// writes and syncs that wait for a disk, and maxSyncs the part of them that
	// syncs may take. At the bound calls wait, until their contexts end.
	maxBlocked = 32
	maxSyncs   = 16

	// promptMax is the largest read that is tried without a place among them, in
	// bytes: it copies what is in memory, and nothing else, within a few
	// microseconds. maxIO bounds any other read or write; what is larger comes
	// back short.
	promptMax = 64 << 10
	maxIO     = 16 << 20

	// smallFile is up to which size the first use of a file goes over the network if
	// there is no descriptor yet: see file.small.
	smallFile = 256 << 10

	// maxInterrupts bounds how often a call that a signal has interrupted is made
	// again. Go restarts calls by itself, so that it takes strange file systems to
	// need even one.
	maxInterrupts = 100
)

const (
	// greetTime bounds a handshake but for the questions to the server over the
	// network, which have a bound of their own with the Prober.
	greetTime = 5 * time.Second

	// After a handshake that failed the next one follows in retryMin, and each
	// further one in twice the pause, up to retryMax, all more or less by chance, so
	// that many clients do not come at once. A session that did not last lastsTime
	// is followed by a pause of flapPause at least.
	retryMin  = time.Second
	retryMax  = time.Minute
	lastsTime = time.Second
	flapPause = 100 * time.Millisecond

	// maxHints bounds the handshakes that are made before their time, after a
	// session was lost, because a call was answered over the network: so the server
	// is there again. They are retryMin apart at least.
	maxHints = 30
)
