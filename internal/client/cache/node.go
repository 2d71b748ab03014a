package cache

import (
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/vfs"
)

// node is an object with open files, whichever callers opened them.
type node struct {
	opens int           // guarded by shared.mu
	gen   atomic.Uint64 // counts what ends leases: changes, and news of others' changes

	mu       sync.Mutex
	writers  int // files open for writing
	changing int // calls under way that may change it
	version  store.Version
	since    int64 // when that was first seen
	age      int64 // how long attributes are believed now
	fetching map[fetchKey]chan struct{}
}

// fetchKey is a granule that is being fetched.
type fetchKey struct {
	e *store.Entry
	g int
}

func (s *shared) enter(h vfs.Handle) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[h]
	if n == nil {
		n = &node{fetching: make(map[fetchKey]chan struct{})}
		s.nodes[h] = n
	}
	n.opens++
	return n
}

func (s *shared) leave(h vfs.Handle, n *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.opens--; n.opens == 0 {
		delete(s.nodes, h)
	}
}

// node returns the node of h, or nil if no file is open on it.
func (s *shared) node(h vfs.Handle) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[h]
}

// changed ends all leases of h.
func (s *shared) changed(h vfs.Handle) {
	if n := s.node(h); n != nil {
		n.gen.Add(1)
	}
}

// beginChange is called before a call that may change the object, and endChange when it has returned. In
// between, and if a file is open for writing, there are no leases.
func (n *node) beginChange() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changing++
	n.gen.Add(1)
}

func (n *node) endChange() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changing--
	n.gen.Add(1)
}

func (n *node) addWriters(d int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writers += d
	n.gen.Add(1)
}

// quiet reports whether leases may be given.
func (n *node) quiet() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changing == 0 && n.writers == 0
}

// seen takes note of the version that the server has at time now. It returns when that was first seen, and until
// when it is believed.
func (n *node) seen(v *store.Version, now int64) (since, until int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.age > 0 && n.version.Equal(v) {
		n.age = min(2*n.age, int64(maxAge))
	} else {
		n.version, n.since, n.age = *v, now, int64(minAge)
	}
	return n.since, now + n.age
}

// claim takes granules from..to of e, as many as nobody else is fetching and are not there, and returns the last. If somebody
// is fetching the first, wait is closed when that has ended.
func (n *node) claim(e *store.Entry, from, to int) (last int, done, wait chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if wait = n.fetching[fetchKey{e, from}]; wait != nil {
		return 0, nil, wait
	}
	done = make(chan struct{})
	for last = from; last <= to; last++ {
		if k := (fetchKey{e, last}); last == from || n.fetching[k] == nil && !e.Has(last) {
			n.fetching[k] = done
			continue
		}
		break
	}
	return last - 1, done, nil
}

// unclaim ends the claim of granules from..to.
func (n *node) unclaim(e *store.Entry, from, to int, done chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for g := from; g <= to; g++ {
		delete(n.fetching, fetchKey{e, g})
	}
	close(done)
}
