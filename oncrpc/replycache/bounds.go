package replycache

import "time"

// The defaults of [Options], and the bounds that have no option.
const (
	// DefaultPerClient and DefaultKeep say what is remembered of one client: its last
	// replies, and all that are so young. Beyond both the oldest are evicted. A client
	// in trouble asks again for minutes, but within one minute it has connected anew
	// and asked again many times.
	// DefaultMaxAge is how old a reply may be. An older one is never sent again: its
	// number may be another call's by now. knfsd has the same.
	DefaultPerClient = 4096
	DefaultKeep      = 60 * time.Second
	DefaultMaxAge    = 120 * time.Second

	// DefaultMaxBytes is the memory of all replies together. Above it the share that
	// holds most loses its oldest replies, however young. It loses 1/trimPart of
	// MaxBytes more than needed, so that this does not happen at each call.
	DefaultMaxBytes = 64 << 20
	trimPart        = 256

	// maxReply is the longest reply that is remembered, in bytes. The call of a longer
	// one is executed again when it is repeated: procedures that must not be executed
	// twice have short replies.
	maxReply = 64 << 10

	// maxClients is how many clients are known that have left. Above it one is
	// forgotten: of the share that has most of them, the one that left longest ago.
	// Connected clients are bounded by the server's connections.
	maxClients = 4096

	// overhead is what an entry takes beside the bytes of its reply. A buffer is used
	// again for another reply if it is no longer than twice that and slack. Entries are
	// allocated slabSize at once, and a client keeps maxSpare of them to use again.
	overhead = 192
	slack    = 64
	slabSize = 32
	maxSpare = 2 * slabSize

	// evictAtOnce is how many replies one new reply evicts at most: when a client comes
	// back after all its replies have aged, its first call does not pay for all.
	evictAtOnce = 4

	// A client's map is made anew when it holds less than 1/mapShrink of the most that
	// it held, because a map does not shrink. Below minShrunk entries it is left alone.
	mapShrink = 2
	minShrunk = 32

	// Replies up to shortReply bytes are cut from chunks of chunkBytes. Longer ones are
	// allocated one by one, and their buffers are not used again.
	shortReply = 256
	chunkBytes = 2 << 10
)
