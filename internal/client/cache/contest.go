package cache

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
)

// contest compares what the cache's disk takes with what the server takes, for reads of one kind. While the disk
// is the slower one, reads go past the cache; what an open file has read from it before is still read from there.
//
// The disk loses if it takes half as long again as the server, and more than quick. After minPast it may show itself
// anew. It wins back its place if it is no slower than the server, and else has lost for twice as long, up to
// maxPast.
type contest struct {
	quick float64

	until atomic.Int64 // reads go past the cache until then; 0: they do not

	mu           sync.Mutex
	disk, server window
	probing      bool  // reads go past the cache because nothing is known of the server
	last         int64 // for how long the disk has lost the last time; 0: it has not, or has won since
}

// window are the last samples.
type window struct {
	at [samples]float64
	n  int // ever
}

func (w *window) add(v float64) {
	w.at[w.n%samples] = v
	w.n++
}

// mean is that of the samples without the highest quarter of them, which may be chance.
func (w *window) mean() float64 {
	at := w.at
	some := at[:min(w.n, samples)]
	slices.Sort(some)
	some = some[:(3*len(some)+3)/4]
	sum := 0.0
	for _, v := range some {
		sum += v
	}
	return sum / float64(len(some))
}

// past reports whether reads go past the cache. It is asked before each read.
func (c *contest) past(s *shared) bool {
	until := c.until.Load()
	if until == 0 {
		return false
	}
	if s.now() < until {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.Load() == until {
		c.end()
	}
	return false
}

// end has reads come to the cache again. c.mu is held.
func (c *contest) end() {
	c.until.Store(0)
	if !c.probing {
		c.disk.n = 0
	}
	c.probing = false
}

// tookDisk and tookServer take note of a sample at time now. They report whether the disk has lost by it.
func (c *contest) tookDisk(v float64, now int64) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disk.add(v)
	return c.judge(now)
}

func (c *contest) tookServer(v float64, now int64) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.add(v)
	if c.probing && c.server.n >= fewSamples {
		c.end()
	}
	return c.judge(now)
}

// judge decides when there are enough samples. c.mu is held.
func (c *contest) judge(now int64) (lost bool) {
	if c.until.Load() != 0 || c.disk.n < samples {
		return false
	}
	disk := c.disk.mean()
	switch {
	case disk <= c.quick:
	case c.server.n < fewSamples: // all that was read was there
		c.probing = true
		c.until.Store(now + int64(maxProbe))
		return false
	default:
		server := c.server.mean()
		if c.last == 0 && disk > server*loses8/8 || c.last > 0 && disk > server {
			c.last = min(max(2*c.last, int64(minPast)), int64(maxPast))
			c.until.Store(now + c.last)
			return true
		}
	}
	c.last = 0
	return false
}

// The kinds of reads that are compared with each other: small ones by the time that one takes, in nanoseconds,
// others by that of a mebibyte.
const (
	small = iota
	large
	kinds
)

func kindOf(n uint64) int {
	if n < store.MinGranule {
		return small
	}
	return large
}

func sampleOf(n int, took time.Duration) (kind int, v float64) {
	if kind = kindOf(uint64(n)); kind == small {
		return kind, float64(took)
	}
	return kind, float64(took) * (1 << 20) / float64(n)
}

// past reports whether what l's entry has on the disk alone is read from the server, as that is quicker.
func (s *shared) past(l *lease) bool {
	return s.contests[kindOf(min(l.version.Size, uint64(l.e.Granule())))].past(s)
}

// tookDisk is told by the store what its disk takes.
func (s *shared) tookDisk(n int, took time.Duration) {
	kind, v := sampleOf(n, took)
	s.lost(s.contests[kind].tookDisk(v, s.now()))
}

// tookServer takes note of a READ of n bytes that began at time start.
func (s *shared) tookServer(n int, start time.Time) {
	if n > 0 {
		kind, v := sampleOf(n, time.Since(start))
		s.lost(s.contests[kind].tookServer(v, s.now()))
	}
}

func (s *shared) lost(lost bool) {
	if lost {
		s.store.Note("cache: its disk is slower than the server; files are read past it where that is so")
	}
}
