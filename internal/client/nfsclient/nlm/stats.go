package nlm

import "sync/atomic"

type counters struct {
	granted, denied, reclaimed, lost, settled, unsettled atomic.Uint64
}

// Stats are counters of an FS. Locks, Owners and Pending are present values, the others only grow.
type Stats struct {
	Locks   int // ranges that are held
	Owners  int // that hold locks, or ask for some
	Pending int // operations under way

	Granted   uint64
	Denied    uint64 // because of another's lock
	Suspected uint64 // restarts of the server
	Reclaimed uint64 // locks asked for again, and had
	Lost      uint64 // locks that could not be had back; their owners are told
	Settled   uint64 // locks whose caller had gone, or whose reply was lost
	Unsettled uint64 // operations that the server did not answer within settleTime
}

// Stats returns the counters.
func (f *FS) Stats() Stats {
	s := f.s
	st := Stats{Granted: s.n.granted.Load(), Denied: s.n.denied.Load(), Suspected: s.epoch.Load(), Reclaimed: s.n.reclaimed.Load(),
		Lost: s.n.lost.Load(), Settled: s.n.settled.Load(), Unsettled: s.n.unsettled.Load()}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Locks, st.Owners, st.Pending = s.locks, len(s.owners), s.pending
	return st
}
