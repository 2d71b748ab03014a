package readahead

import "sync/atomic"

// Stats are counters of an FS and all its views. All but Held only grow.
type Stats struct {
	Held   int64  // memory, in bytes, of what has been or is being read ahead
	Bytes  uint64 // read ahead
	Hits   uint64 // reads that found, or came to wait for, what was read ahead
	Misses uint64 // reads that went below, but those of near files
	Wasted uint64 // bytes of Bytes that no read asked for
}

// counters are what Stats is made from.
type counters struct {
	read, hits, misses, wasted atomic.Uint64
}

// Stats returns the counters since New. It may be called at any time.
func (f *FS) Stats() Stats {
	s := f.s
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	return Stats{
		Held:   held,
		Bytes:  s.count.read.Load(),
		Hits:   s.count.hits.Load(),
		Misses: s.count.misses.Load(),
		Wasted: s.count.wasted.Load(),
	}
}
