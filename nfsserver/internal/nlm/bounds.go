package nlm

import "time"

// What all clients share is divided among homes: one may take more only while it has
// less than is free, and less than its own bound (see may).
const (
	// maxClients bounds the clients that are known, and maxNames those of one home,
	// which can call itself what it likes, or hide a network. At the bound one that
	// holds nothing is forgotten, of that home if it is the home's bound; if that
	// makes no room, a newcomer is told NLM4_DENIED_NOLOCKS. A client that no rule admits has
	// no place among them. A home that has less than fewNames may have another while
	// there is room: all clients are looked at only for one that has many.
	maxClients = 4096
	maxNames   = 1024
	fewNames   = 8

	// maxLocks bounds the ranges that are locked, of all clients, and maxClientLocks
	// those of one home. At the bound the answer is NLM4_DENIED_NOLOCKS, also to an
	// UNLOCK that would leave more ranges than there were.
	maxLocks       = 1 << 18
	maxClientLocks = 1 << 16

	// DefaultMaxHoldings is how many owners of locks one home has, each counted once
	// for each file: NLM4_DENIED_NOLOCKS. It is a quarter of the files that a
	// directory is served with by default, for its file system opens one for each,
	// lets locks have half of all, and divides those by vfs.Owner.Share.
	DefaultMaxHoldings = 1024

	// maxWaits bounds the locks that wait, of all clients, maxQueue those for one
	// file, and maxClientWaits those of one home: NLM4_DENIED_NOLOCKS. A home that is
	// alone has half of a file's.
	maxWaits       = 1 << 15
	maxQueue       = 2048
	maxClientWaits = 8192

	// maxShares bounds the share reservations of all clients, maxFileShares those of
	// one file, and maxClientShares those of one home: NLM4_DENIED_NOLOCKS. A home
	// that is alone has half of a file's.
	maxShares       = 1 << 16
	maxFileShares   = 2048
	maxClientShares = 1 << 14

	// maxResults bounds the answers of the asynchronous procedures that wait to be
	// sent, and maxClientResults those to one home. At the bound an answer is
	// dropped, and the client will ask again.
	maxResults       = 4096
	maxClientResults = 256

	// maxCalling bounds the calls to clients that are under way, each with a socket
	// and its buffers, and maxClientCalling those to one home. What is more waits for
	// its turn; a home that does not answer holds up no other.
	maxCalling       = 64
	maxClientCalling = 8
)

const (
	// pollPause is how often files with a queue are looked at, whose lock a local
	// program may hold. Looking takes at most one part in pollShare of the time.
	pollPause = 100 * time.Millisecond
	pollShare = 20

	// idleEvery is how often clients are looked at, and idleAfter how long one
	// that holds nothing is still monitored: a client that locks and unlocks all
	// day shall not cost a write to the disk each time.
	idleEvery = time.Minute
	idleAfter = 5 * time.Minute

	// grantFor is how long a grant is sent that the client does not answer.
	grantFor = 90 * time.Second

	// Between two tries there is a pause, which grows. Clients ask again by
	// themselves, Linux every 30 s.
	grantPause    = time.Second
	maxGrantPause = 10 * time.Second

	// fullPause is how often, at most, the log is told of a lock that is refused for
	// want of room.
	fullPause = time.Minute

	// askPause is how often one host is asked for its state number, at most, on the
	// ground of what others say.
	askPause = 10 * time.Second

	// callTimeout is how long a client has for one answer.
	callTimeout = 2 * time.Second
)
