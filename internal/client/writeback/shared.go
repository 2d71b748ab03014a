package writeback

import (
	"container/list"
	"context"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// shared is what the views have in common.
type shared struct {
	opt   Options
	count counters

	mu     sync.Mutex
	nodes  map[vfs.Handle]*node // objects with open files
	over   error                // that the FS is closed
	limits *vfs.Info            // as first asked for
	dirty  int64                // bytes of buffers

	stored atomic.Uint64 // counts how often pieces have become stable

	queue list.List  // of *node: those with dirty bytes, that longest so first
	room  *sync.Cond // there may be less dirty than before
	freed uint64     // counts what room tells
}

func newShared(opt Options) *shared {
	s := &shared{opt: opt, nodes: make(map[vfs.Handle]*node)}
	s.room = sync.NewCond(&s.mu)
	return s
}

// node returns the node of h, or nil if no file is open on it.
func (s *shared) node(h vfs.Handle) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[h]
}

// all lists the nodes.
func (s *shared) all() []*node {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := make([]*node, 0, len(s.nodes))
	for _, n := range s.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

// charge adds n dirty bytes, which may be negative.
func (s *shared) charge(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty += int64(n)
	if n < 0 {
		s.tell()
	}
}

// tell wakes all calls that wait for room. s.mu is held.
func (s *shared) tell() {
	s.freed++
	s.room.Broadcast()
}

// reserve charges n bytes if there is room. The first bytes always have it.
func (s *shared) reserve(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full(n) {
		return false
	}
	s.dirty += int64(n)
	return true
}

func (s *shared) full(n int) bool { return s.dirty > 0 && s.dirty+int64(n) > s.opt.MaxDirty }

// awaitRoom waits until n more bytes may be dirty, and meanwhile has the object
// flushed that has been dirty for the longest time.
func (s *shared) awaitRoom(ctx context.Context, n int) error {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tell()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.full(n) {
		if err := ctx.Err(); err != nil {
			return err
		}
		freed := s.freed
		if oldest := s.queue.Front(); oldest != nil {
			s.mu.Unlock()
			oldest.Value.(*node).flushNow()
			s.mu.Lock()
		}
		if s.freed == freed {
			s.room.Wait()
		}
	}
	return nil
}

// enlist puts n at the end of the queue of nodes with dirty bytes, or takes it
// out.
func (s *shared) enlist(n *node, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.place != nil {
		s.queue.Remove(n.place)
		n.place = nil
	}
	if dirty {
		n.place = s.queue.PushBack(n)
	}
	s.tell()
}

// transferSize is how much one WRITE carries: a power of two, as buffers
// are.
func transferSize(pref, most uint32, bound int64) int {
	if pref == 0 {
		pref = most
	}
	return 1 << log2(int(min(int64(max(pref, minTransfer)), maxTransfer, max(bound, 1))))
}

// log2 is the power of two that n, which is positive, reaches.
func log2(n int) int { return bits.Len(uint(n)) - 1 }
