package nlm

import "time"

// What all clients share is divided among homes. A home may take more only while it has
// less than is free, and less than its own bound (see may).
const (
	// maxClients bounds the clients that are known. maxNames bounds those of one home,
	// which can call itself what it likes, or be a network behind one address. At the
	// bound a client that holds nothing is forgotten; at that of a home, one of this
	// home. If that makes no room, a new client gets NLM4_DENIED_NOLOCKS. Clients that
	// no rule admits are not among them. A home with fewer than fewNames gets another
	// while there is room; only for larger ones are all clients counted.
	maxClients = 4096
	maxNames   = 1024
	fewNames   = 8

	// maxLocks bounds the ranges that are locked, of all clients, and maxClientLocks
	// those of one home. At the bound the answer is NLM4_DENIED_NOLOCKS, also to an
	// UNLOCK that would leave more ranges than there were.
	maxLocks       = 1 << 18
	maxClientLocks = 1 << 16

	// DefaultMaxHoldings bounds the owners of locks of one home, each counted once
	// for each file. At the bound the answer is NLM4_DENIED_NOLOCKS. It is a quarter of
	// the files that a directory is served with by default: its file system opens one
	// for each, lets locks have half of all, and divides those by vfs.Owner.Share.
	DefaultMaxHoldings = 1024

	// maxWaits bounds the locks that wait, of all clients, maxQueue those for one
	// file, and maxClientWaits those of one home. At the bound the answer is
	// NLM4_DENIED_NOLOCKS. A home that is alone gets half of a file's.
	maxWaits       = 1 << 15
	maxQueue       = 2048
	maxClientWaits = 8192

	// maxShares bounds the share reservations of all clients, maxFileShares those of
	// one file, and maxClientShares those of one home. At the bound the answer is
	// NLM4_DENIED_NOLOCKS. A home that is alone gets half of a file's.
	maxShares       = 1 << 16
	maxFileShares   = 2048
	maxClientShares = 1 << 14

	// maxResults bounds the answers of the asynchronous procedures that wait to be
	// sent, and maxClientResults those to one home. At the bound an answer is
	// dropped, and the client will ask again.
	maxResults       = 4096
	maxClientResults = 256

	// maxCalling bounds the calls to clients that are under way, each with a socket
	// and its buffers, and maxClientCalling those to one home. Further calls wait for
	// their turn. A home that does not answer holds up no other.
	maxCalling       = 64
	maxClientCalling = 8
)

const (
	// pollPause is how often files with a queue are tried again, since a local program
	// may hold the lock. That takes at most one part in pollShare of the time.
	pollPause = 100 * time.Millisecond
	pollShare = 20

	// idleEvery is how often idle clients are looked for, and idleAfter how long a
	// client that holds nothing is still monitored. So a client that locks and unlocks
	// all day does not cost a write to the disk each time.
	idleEvery = time.Minute
	idleAfter = 5 * time.Minute

	// grantFor is how long a grant is sent again to a client that does not answer.
	grantFor = 90 * time.Second

	// Between two tries there is a backoff. Clients also ask again by themselves,
	// Linux every 30 s.
	grantPause    = time.Second
	maxGrantPause = 10 * time.Second

	// fullPause is the least time between two log messages about locks refused for want
	// of room.
	fullPause = time.Minute

	// askPause is the least time between two questions to a host for its state number
	// that another address has caused.
	askPause = 10 * time.Second

	// callTimeout is the timeout of one call to a client.
	callTimeout = 2 * time.Second
)
