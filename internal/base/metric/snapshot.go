package metric

import (
	"iter"
	"math"
	"time"
)

// Snapshot is a histogram's counts at one time. The zero Snapshot, and a nil one, are empty.
// The caller owns it.
type Snapshot struct {
	Count uint64
	Sum   uint64
	Max   uint64 // since the histogram began, also after Sub

	counts [Buckets]uint64
}

// Mean is the mean of the values; 0 without any.
func (s *Snapshot) Mean() float64 {
	if s == nil || s.Count == 0 {
		return 0
	}
	return float64(s.Sum) / float64(s.Count)
}

// Quantile is the value that a fraction q, from 0 to 1, of the values do not exceed: the middle of its
// bucket, but never above Max. Without values it is 0.
func (s *Snapshot) Quantile(q float64) uint64 {
	if s == nil || s.Count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(s.Count)))
	rank = min(max(rank, 1), s.Count)
	for i, n := range s.counts {
		if rank <= n {
			low, width := bounds(i)
			return min(low+width/2, s.Max)
		}
		rank -= n
	}
	return s.Max
}

// Duration is Quantile for a histogram of durations.
func (s *Snapshot) Duration(q float64) time.Duration { return time.Duration(s.Quantile(q)) }

// Add adds the counts of o, as if one histogram had recorded both.
func (s *Snapshot) Add(o *Snapshot) {
	if o == nil {
		return
	}
	for i, n := range o.counts {
		s.counts[i] += n
	}
	s.Count, s.Sum, s.Max = s.Count+o.Count, s.Sum+o.Sum, max(s.Max, o.Max)
}

// Sub subtracts an earlier snapshot of the same histogram, and leaves what was recorded in between.
func (s *Snapshot) Sub(earlier *Snapshot) {
	if earlier == nil {
		return
	}
	for i, n := range earlier.counts {
		s.counts[i] -= min(n, s.counts[i])
	}
	s.Count -= min(earlier.Count, s.Count)
	s.Sum -= min(earlier.Sum, s.Sum)
}

// All yields each bucket that is not empty, in ascending order: the lowest value above it and
// its count.
func (s *Snapshot) All() iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		if s == nil {
			return
		}
		for i, n := range s.counts {
			low, width := bounds(i)
			if n > 0 && !yield(low+width, n) {
				return
			}
		}
	}
}
