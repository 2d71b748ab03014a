package writeback

import (
	"container/list"
	"context"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// shared is what the views have in common.
type shared struct {
	opt   Options
	count counters

	mu     sync.Mutex
	nodes  map[vfs.Handle]*node // objects with open files
	closed closed               // objects that had
	over   error                // that the FS is closed
	limits *vfs.Info            // as first asked for

	// dirty is the memory of all pieces, in bytes; not zero while there is one. It changes under
	// mu. stableCount counts how often pieces have become stable, and grows before these are
	// dropped. Both are read without mu.
	dirty       atomic.Int64
	stableCount atomic.Uint64

	made     time.Time
	answered atomic.Int64 // when the server has answered last: nanoseconds after made

	queue list.List  // of *node: those with dirty bytes and no flush, that longest so first
	room  *sync.Cond // there may be less dirty than before
	freed uint64     // counts how often room has woken calls
}

func newShared(opt Options) *shared {
	s := &shared{opt: opt, nodes: make(map[vfs.Handle]*node), made: time.Now()}
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

// charge adds more bytes to the memory of n's pieces; more may be negative.
func (s *shared) charge(n *node, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty.Add(int64(more))
	n.charged += int64(more)
	if more < 0 {
		s.tell()
	}
}

// tell wakes all calls that wait for room. s.mu is held.
func (s *shared) tell() {
	s.freed++
	s.room.Broadcast()
}

// reserve charges n with more bytes if there is room for them.
func (s *shared) reserve(n *node, more int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fits(n, more) {
		return false
	}
	s.dirty.Add(int64(more))
	n.charged += int64(more)
	return true
}

// fits reports whether n may have more bytes: they have to be free, and n must not get more than
// maxShare times what is free. The first bytes of all always have room. s.mu is held.
func (s *shared) fits(n *node, more int) bool {
	dirty := s.dirty.Load()
	free := s.opt.MaxDirty - dirty
	return dirty == 0 || int64(more) <= free && (n.charged+int64(more))/maxShare <= free
}

// awaitRoom waits until n may have more bytes. Meanwhile it has objects flushed: the one that has
// been dirty for the longest time, and with each wait another one. So an object whose flush does
// not end keeps no other from being flushed.
func (s *shared) awaitRoom(ctx context.Context, n *node, more int) error {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tell()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.fits(n, more) {
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

// enlist puts n at the end of the queue, or takes it out.
func (s *shared) enlist(n *node, queued bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.place != nil {
		s.queue.Remove(n.place)
		n.place = nil
	}
	if queued {
		n.place = s.queue.PushBack(n)
		s.tell() // a call that waits for room has one more object to flush
	}
}

// transferSize is how much one WRITE carries, at most bound: a power of two, as buffers are.
func transferSize(pref, most uint32, bound int64) int {
	if pref == 0 {
		pref = most
	}
	return 1 << log2(int(min(int64(max(pref, minTransfer)), maxTransfer, max(bound, 1))))
}

// log2 is the power of two that n, which is positive, reaches.
func log2(n int) int { return bits.Len(uint(n)) - 1 }
