package localfs

import "sync/atomic"

// Snapshot is what an FS does and has done, with all its views, at one time. The
// counters only grow.
type Snapshot struct {
	Open    int // descriptors, those lent to others included
	MaxOpen int // Options.MaxOpen, as far as the process may
	Dirty   int // of them, those through which something was written and not synced since

	Hits, Misses uint64 // of look-ups in the cache of descriptors
	Evicted      uint64 // descriptors closed to make room for others
	Idle         uint64 // descriptors closed because they were idle

	Syncs     uint64 // of files, directories and file systems
	Shared    uint64 // calls that were content with a sync that others had asked for
	Cleaned   uint64 // syncs only because too many descriptors were dirty, or one for too long
	Verifiers uint64 // how often a failed sync has changed the write verifier

	NowaitHits   uint64 // reads found in memory, without a place in the gate
	NowaitMisses uint64 // reads that had to take one
	AsCaller     uint64 // writes made under the identity of the caller
	Busy         uint64 // calls that the gate turned away
}

// counts are the counters behind Snapshot, but for those of the descriptors.
type counts struct {
	syncs, shared, cleaned, verifiers  atomic.Uint64
	nowaitHits, nowaitMisses, asCaller atomic.Uint64
	busy                               atomic.Uint64
}
