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
	s := Snapshot{
		Open: int(h.fds.open.Load()), MaxOpen: h.fds.max, Dirty: int(h.fds.dirt.n.Load()),
		Evicted: h.fds.evicted.Load(), Idle: h.fds.idled.Load(),
		Syncs: n.syncs.Load(), Shared: n.shared.Load(), Cleaned: n.cleaned.Load(), Verifiers: n.verifiers.Load(),
		NowaitHits: n.nowaitHits.Load(), NowaitMisses: n.nowaitMisses.Load(), AsCaller: n.asCaller.Load(),
		Busy: n.busy.Load(),
	}
	for i := range h.fds.shards {
		f := &h.fds.shards[i]
		f.mu.Lock()
		s.Hits += f.hits
		s.Misses += f.misses
		f.mu.Unlock()
	}
	return s
}
