package metric

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// subBits is the number of bits of a value that its bucket keeps, below the
	// leading one.
	subBits = 4
	subs    = 1 << subBits

	// Buckets is the number of buckets of a histogram. Values above the last one, which ends at
	// 2^47, are counted in it.
	Buckets = (48 - subBits) * subs
)

// Histogram counts values, such as durations in nanoseconds or lengths in bytes.
// The zero Histogram is empty and ready. It takes 6 KiB, must not be copied, and
// all methods may be called concurrently.
type Histogram struct {
	counts [Buckets]atomic.Uint64
	sum    atomic.Uint64
	max    atomic.Uint64
}

func bucket(v uint64) int {
	if v < subs {
		return int(v)
	}
	shift := bits.Len64(v) - subBits - 1
	return min(shift*subs+int(v>>shift), Buckets-1)
}

// bounds are the lowest value of bucket i and its width.
func bounds(i int) (low, width uint64) {
	if i < 2*subs {
		return uint64(i), 1
	}
	shift := i/subs - 1
	return uint64(i%subs+subs) << shift, 1 << shift
}

// Record counts v.
func (h *Histogram) Record(v uint64) {
	h.counts[bucket(v)].Add(1)
	h.sum.Add(v)
	for {
		old := h.max.Load()
		if v <= old || h.max.CompareAndSwap(old, v) {
			return
		}
	}
}

// Since counts the nanoseconds from start to now; a negative time counts as 0.
func (h *Histogram) Since(start, now time.Time) { h.Duration(now.Sub(start)) }

// Duration counts d in nanoseconds; a negative one counts as 0.
func (h *Histogram) Duration(d time.Duration) { h.Record(uint64(max(d, 0))) }

// Snapshot copies the counts.
func (h *Histogram) Snapshot() *Snapshot {
	s := new(Snapshot)
	for i := range h.counts {
		n := h.counts[i].Load()
		s.counts[i] = n
		s.Count += n
	}
	s.Sum, s.Max = h.sum.Load(), h.max.Load()
	return s
}
