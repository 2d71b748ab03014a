package localio

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// shared is the state that all views of an FS share.
type shared struct {
	o     Options
	p     Prober
	gate  gate
	count counters
	link  atomic.Pointer[link] // nil: none
	verf  atomic.Uint64        // of all objects without one of their own
	wait  time.Duration        // the longest wait for a descriptor

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup // goroutines
	hint    chan struct{}  // the server may be back
	hints   atomic.Int32   // how many more of these are used
	met     chan struct{}  // closed, by meeting, when the first handshake has ended
	meeting sync.Once

	mu       sync.Mutex
	over     bool                 // closed; mu guards this and what follows
	unsynced error                // of syncs since then
	why      string               // why files are not local
	some     string               // why the most recent remote file is not local, though others are
	nodes    map[vfs.Handle]*node // those with refs, and those to remember
	kept     int                  // how many of them are only remembered
	held     int                  // valid grants, and asks
	closing  int                  // grants that were given back or revoked, and are not closed yet
	open     map[*grant]struct{}  // not closed yet
	idles    int                  // in the list from oldest to newest
	oldest   *grant               // idle for longest
	newest   *grant               // idle for shortest
	sweeper  *time.Timer          // nil: nothing is idle
}

// random is a random number other than 0.
func (s *shared) random() uint64 {
	var b [8]byte
	for range 8 {
		s.o.Rand(b[:])
		if u := binary.LittleEndian.Uint64(b[:]); u != 0 {
			return u
		}
	}
	return 1
}

// enter returns the node of h, and counts the caller as a user. The caller drops it.
func (s *shared) enter(h vfs.Handle) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[h]
	if n == nil {
		n = &node{
			s: s, h: h,
			grants: make(map[key]*grant), asks: make(map[key]*ask),
			refusals: make(map[key]*refusal), dirty: make(map[*grant]dirtiness),
		}
		s.nodes[h] = n
	}
	if n.kept {
		n.kept = false
		s.kept--
	}
	n.refs++
	return n
}

// find returns the node of h if it exists, or nil.
func (s *shared) find(h vfs.Handle) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[h]; n != nil && !n.kept {
		n.refs++
		return n
	}
	return nil
}

// unanswered notes a change of h's bytes over the network that was cut off and may still be
// carried out.
func (s *shared) unanswered(h vfs.Handle) {
	n := s.enter(h)
	n.unanswered()
	s.drop(n)
}

// hold adds a user of n, which has one already.
func (s *shared) hold(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.refs++
}

// drop removes a user of n. A node without users is forgotten, unless it has a verifier of its
// own, or the server has uncommitted bytes of it: a caller that opens the object again and
// commits must learn of it. At maxRemembered all objects count as if bytes of them were lost.
func (s *shared) drop(n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.refs--; n.refs > 0 {
		return
	}
	if n.verf.Load() == 0 && !n.below.Load() {
		delete(s.nodes, n.h)
		return
	}
	n.kept = true
	if s.kept++; s.kept <= maxRemembered {
		return
	}
	s.verf.Store(s.random())
	s.count.verifiers.Add(1)
	for h, n := range s.nodes {
		if n.kept {
			delete(s.nodes, h)
		}
	}
	s.kept = 0
}

// limit is how many descriptors may be held in l.
func (s *shared) limit(l *link) int { return max(1, min(s.o.MaxFiles, l.slots)) }

// reserve makes room for one more descriptor. It returns false if all are in use, or if more
// than as many again are still to be closed.
func (s *shared) reserve(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.limit(l)
	if s.over || s.closing > limit {
		return false
	}
	if s.held >= limit {
		if s.oldest == nil {
			return false
		}
		s.expel(s.oldest)
	}
	s.held++
	return true
}

func (s *shared) unreserve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
}

// admit adds g, for which room was reserved.
func (s *shared) admit(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[g] = struct{}{}
	s.count.opens.Add(1)
}

// gone is called once, when g is retired: it is no longer held.
func (s *shared) gone(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part(g)
}

// part counts g among those that are still to be closed. mu is held.
func (s *shared) part(g *grant) {
	s.unlink(g)
	if !g.parted {
		g.parted = true
		s.held--
		s.closing++
	}
}

// closed is called once, when g was closed. It drops g's node.
func (s *shared) closed(g *grant) {
	s.mu.Lock()
	delete(s.open, g)
	s.closing--
	s.count.add(g)
	s.mu.Unlock()
	s.drop(g.n)
}

// park keeps g, which no file uses, for up to idleTime.
func (s *shared) park(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.idle || g.parted || g.users.Load() < 0 {
		return
	}
	g.idle, g.since = true, time.Now()
	g.older, g.newer = s.newest, nil
	if s.newest != nil {
		s.newest.newer = g
	} else {
		s.oldest = g
	}
	s.newest = g
	if s.idles++; s.idles > max(1, s.o.MaxFiles/idleShare) {
		s.expel(s.oldest)
	}
	if s.sweeper == nil && !s.over {
		s.sweeper = time.AfterFunc(idleTime, s.sweep)
	}
}

// unpark is called when a file uses g.
func (s *shared) unpark(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlink(g)
}

// unlink removes g from the list of idle ones, if it is there. mu is held.
func (s *shared) unlink(g *grant) {
	if !g.idle {
		return
	}
	g.idle = false
	s.idles--
	if g.older != nil {
		g.older.newer = g.newer
	} else {
		s.oldest = g.newer
	}
	if g.newer != nil {
		g.newer.older = g.older
	} else {
		s.newest = g.older
	}
	g.older, g.newer = nil, nil
}

// expel gives back an idle g. mu is held, under which nothing is retired.
func (s *shared) expel(g *grant) {
	s.part(g)
	s.work.Go(g.retire)
}

// sweep gives back what was idle for idleTime.
func (s *shared) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeper = nil
	if s.over {
		return
	}
	for s.oldest != nil && time.Since(s.oldest.since) >= idleTime {
		s.expel(s.oldest)
	}
	if s.oldest != nil {
		s.sweeper = time.AfterFunc(idleTime-time.Since(s.oldest.since), s.sweep)
	}
}

// shrink gives back all idle descriptors, because the process lacks descriptors.
func (s *shared) shrink() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.oldest != nil {
		s.expel(s.oldest)
	}
}

// notSynced notes a sync that failed when no file had the object open. The verifier shows it to
// callers that open the object again; when the FS is closed, Close returns it.
func (s *shared) notSynced(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over && s.unsynced == nil {
		s.unsynced = err
	}
}

// refused notes why a file is not local.
func (s *shared) refused(r *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.some = r.why
}
