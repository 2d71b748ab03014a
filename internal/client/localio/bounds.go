package localio

import "time"

const (
	// maxFiles bounds the descriptors that are held at once, unless Options.MaxFiles or the
	// server says less. fileShare bounds them to a fraction, 1/fileShare, of what the process
	// may open (RLIMIT_NOFILE). At the bound an idle one is given back. If all are in use,
	// further files go over the network, and also while more than as many again wait to be
	// synced and closed.
	maxFiles  = 1024
	fileShare = 4

	// idleShare bounds the idle descriptors, those without an open file, to a fraction,
	// 1/idleShare, of all; they make opening a file again cheap. At the bound the one that was
	// idle for longest is given back. idleTime is how long one is kept: a file that another
	// program has removed keeps its disk space for as long.
	idleShare = 2
	idleTime  = 10 * time.Second

	// openWait bounds how long a read or write waits for a descriptor. At the bound it goes
	// over the network, and so do later ones until the descriptor has come. requireWait is the
	// bound in mode Require, with asking again for what was revoked. At the bound the call
	// fails.
	openWait    = 100 * time.Millisecond
	requireWait = 30 * time.Second

	// crowdedTime is how long a file stays remote for which there was no room for a
	// descriptor, on either side.
	crowdedTime = time.Second

	// refusedTime is how long a file stays remote that the server has refused to hand out:
	// rights and exports may change. For files without an open file nothing is remembered. If
	// the reason is the export, or our user, the refusal lasts as long as the session.
	refusedTime = 30 * time.Second

	// maxOpensAhead bounds the requests without an answer. At the bound further files are
	// remote for crowdedTime.
	maxOpensAhead = 256

	// maxStrangers bounds the callers that the server is known not to accept from this process.
	// At the bound all are forgotten, and asked for again.
	maxStrangers = 1024

	// maxRemembered bounds the objects without open files that are remembered because the
	// server has unstable bytes of them, or some were lost. At the bound all are forgotten and
	// the verifier of every object without one of its own changes, so that their writers write
	// what is uncommitted again.
	maxRemembered = 1024
)

const (
	// maxBlocked bounds the threads that all files of an FS may have in reads, writes and syncs
	// that wait for a disk, and maxSyncs those among them in syncs. At the bound calls wait,
	// until their contexts end.
	maxBlocked = 32
	maxSyncs   = 16

	// promptMax is the largest read, in bytes, that is tried without a place in the gate: it
	// only copies what is in memory, within a few microseconds. maxIO bounds any other read or
	// write; at the bound it is short.
	promptMax = 64 << 10
	maxIO     = 16 << 20

	// smallFile is the size up to which the first use of a file goes over the network if there
	// is no descriptor yet: see file.small.
	smallFile = 256 << 10

	// maxInterrupts bounds how often an interrupted call is repeated. Go has system calls
	// restarted, so only unusual file systems need even one.
	maxInterrupts = 100
)

const (
	// greetTime bounds a handshake, except for its calls over the network, which the Prober
	// bounds.
	greetTime = 5 * time.Second

	// After a failed handshake the next one follows after retryMin, and each further one after
	// twice the pause, up to retryMax. The pauses are random, so that clients do not come
	// together. After a session shorter than lastsTime the pause is at least flapPause.
	retryMin  = time.Second
	retryMax  = time.Minute
	lastsTime = time.Second
	flapPause = 100 * time.Millisecond

	// maxHints bounds the early handshakes after a lost session. They are made because a call
	// was answered over the network, which shows that the server is back. They are at least
	// retryMin apart.
	maxHints = 30
)
