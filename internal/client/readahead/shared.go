package readahead

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// shared is what the views have in common.
type shared struct {
	opt   Options
	count counters
	unit  atomic.Int64 // bytes that a READ carries, a power of two; 0: not known yet

	mu    sync.Mutex
	nodes map[vfs.Handle]*node // objects with open files
	over  bool                 // the FS is closed
	held  int64                // bytes of buffers
	swept time.Time            // when idle streams were last looked for

	attrs    sync.Pool                // of *vfs.Attr
	chunks   sync.Pool                // of *chunk
	found    atomic.Int32             // the level that a stream has found last; 0: none has
	readCost atomic.Pointer[readCost] // nil before the first look
	copied   copied                   // what it costs to copy what was read ahead
	judged   atomic.Uint64            // counts calls of file.judge
	begun    atomic.Uint64            // counts READs
	reading  atomic.Int32             // READs in flight now
	least    atomic.Int64             // shortest time of a READ, in nanoseconds; see quickest; 0: none yet
}

// learnLimits takes over how much a READ carries, once. If another file system below carries less,
// its READs come back short, and the rest is asked for again.
func (s *shared) learnLimits(info *vfs.Info) {
	pref := info.ReadPref
	if pref == 0 {
		pref = info.ReadMax
	}
	s.unit.CompareAndSwap(0, 1<<log2(int(min(max(pref, minTransfer), maxTransfer))))
}

// node returns the node of h, or nil if no file is open on it.
func (s *shared) node(h vfs.Handle) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[h]
}

// resized makes open files of h forget what they read ahead, as a call may have set its size.
func (s *shared) resized(h vfs.Handle) {
	if n := s.node(h); n != nil {
		n.beginChange(0, math.MaxUint64)
		n.endChange(0, math.MaxUint64)
	}
}

func (s *shared) all() []*node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.nodes))
}

// reserve charges n bytes, if there is room. If there is none, crowded says that it is time for a
// sweep.
func (s *shared) reserve(n int) (ok, crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held+int64(n) <= s.opt.Total {
		s.held += int64(n)
		return true, false
	}
	now := time.Now()
	if crowded = now.Sub(s.swept) >= sweepPause; crowded {
		s.swept = now
	}
	return false, crowded
}

func (s *shared) unreserve(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= int64(n)
}

// sweep gives up what was read ahead for streams that stand still.
func (s *shared) sweep() {
	now := time.Now()
	for _, n := range s.all() {
		n.dropIdle(now)
	}
}

func (s *shared) attr() *vfs.Attr {
	if a, ok := s.attrs.Get().(*vfs.Attr); ok {
		*a = vfs.Attr{}
		return a
	}
	return new(vfs.Attr)
}

// log2 is the power of two that n, which is positive, reaches.
func log2(n int) int { return bits.Len(uint(n)) - 1 }
