//go:build linux

package localfs

import "sync/atomic"

// counts are the counters behind Snapshot, but for those of the descriptors.
type counts struct {
	syncs, shared, cleaned, verifiers  atomic.Uint64
	nowaitHits, nowaitMisses, asCaller atomic.Uint64
	busy                               atomic.Uint64
}

// Snapshot returns the counters. It costs a few locks, each held for an instant.
func (h *host) Snapshot() Snapshot {
	n := &h.counts
	c := h.fds.Stats()
	return Snapshot{
		Open: c.Open, MaxOpen: h.fds.Max, Dirty: c.Dirty, Hits: c.Hits, Misses: c.Misses, Evicted: c.Evicted, Idle: c.Idled,
		Syncs: n.syncs.Load(), Shared: n.shared.Load(), Cleaned: n.cleaned.Load(), Verifiers: n.verifiers.Load(),
		NowaitHits: n.nowaitHits.Load(), NowaitMisses: n.nowaitMisses.Load(), AsCaller: n.asCaller.Load(),
		Busy: n.busy.Load(),
	}
}
