//go:build linux

package fdcache

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// shards is the number of parts of the cache, each with a lock of its own.
	shards = 16
	// maxCleaned is how many dirty descriptors a call cleans at most to make room for
	// one. At the bound other calls make descriptors dirty as fast, and this one gets
	// vfs.ErrBusy.
	maxCleaned = 4
)

// Cache keeps descriptors open between calls. All methods may be called concurrently. To
// find a descriptor takes the lock of one shard, for the look-up in a map. To give it back
// takes no lock.
type Cache struct {
	Max    int
	seed   maphash.Seed
	open   atomic.Int64 // descriptors that are open, forgotten ones included
	turn   atomic.Uint32
	Dirty  DirtyList
	shards [shards]shard

	// orphaned is called with a dirty descriptor that is closed because its object
	// seemed to have lost its last name.
	orphaned func(*Desc)
	// Clean syncs at least one dirty descriptor, and reports whether it did.
	Clean func() bool
	// Filled is called when something was put into the cache.
	Filled  func()
	evicted atomic.Uint64 // closed to make room
	idled   atomic.Uint64 // closed because they were idle
}

// shard is a part of the cache. To make room a hand goes round the ring (the clock
// algorithm). It passes over a descriptor that was used since it came by the last time, and
// takes the first one that was not used and is not pinned.
type shard struct {
	mu   sync.Mutex
	m    map[Key]*Desc
	ring []*Desc
	hand int

	hits, misses uint64
	_            [64]byte // shards share no line of the processor's cache
}

// New makes a cache of at most max descriptors. orphaned is called before a dirty
// descriptor is closed because its object seemed to have lost its last name.
func New(max int, orphaned func(*Desc)) *Cache {
	c := &Cache{Max: max, seed: maphash.MakeSeed(), orphaned: orphaned, Clean: func() bool { return false }, Filled: func() {}}
	for i := range c.shards {
		c.shards[i].m = make(map[Key]*Desc)
	}
	return c
}

func (c *Cache) shard(h vfs.Handle) *shard {
	return &c.shards[maphash.Bytes(c.seed, h.Bytes())%shards]
}

// Stats are the counters of a cache. All but Open and Dirty only grow.
type Stats struct {
	Open, Dirty    int    // descriptors: those that are open, and of them those that are dirty
	Hits, Misses   uint64 // of look-ups
	Evicted, Idled uint64 // closed: to make room, and because they were idle
}

// Stats returns the counters. It takes the lock of each shard for an instant.
func (c *Cache) Stats() Stats {
	s := Stats{Open: int(c.open.Load()), Dirty: c.Dirty.Count(), Evicted: c.evicted.Load(), Idled: c.idled.Load()}
	for i := range c.shards {
		f := &c.shards[i]
		f.mu.Lock()
		s.Hits += f.hits
		s.Misses += f.misses
		f.mu.Unlock()
	}
	return s
}

// Get returns the descriptor of h for u, pinned, or nil.
func (c *Cache) Get(h vfs.Handle, u Use) *Desc {
	s := c.shard(h)
	s.mu.Lock()
	d := s.m[Key{h, u}]
	if d == nil {
		s.misses++
	} else {
		s.hits++
		d.pins.Add(1)
		d.used.Store(true)
	}
	s.mu.Unlock()
	return d
}

// GetAny is Get for a call that needs a mere reference to h: any use will do.
func (c *Cache) GetAny(h vfs.Handle) (d *Desc) {
	s := c.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range [...]Use{Path, Write, Read} {
		if d = s.m[Key{h, u}]; d != nil {
			s.hits++
			d.pins.Add(1)
			d.used.Store(true)
			return d
		}
	}
	s.misses++
	return nil
}

// Peek is GetAny for an onlooker, for whom nothing is counted and nothing stays open.
func (c *Cache) Peek(h vfs.Handle) *Desc {
	s := c.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range [...]Use{Path, Write, Read} {
		if d := s.m[Key{h, u}]; d != nil {
			d.pins.Add(1)
			return d
		}
	}
	return nil
}

// Put adds fd, which belongs to the cache from now on, also if Put fails, and returns it
// pinned. If another one came first, that is returned and fd closed. With all descriptors
// in use it is vfs.ErrBusy.
func (c *Cache) Put(h vfs.Handle, u Use, fd int, kind uint16) (*Desc, error) {
	if err := c.Room(); err != nil {
		return nil, linux.Close(fd, err)
	}
	d := &Desc{Key: Key{h, u}, FD: fd, Kind: kind}
	d.pins.Store(1)
	s := c.shard(h)
	s.mu.Lock()
	if first := s.m[d.Key]; first != nil {
		first.pins.Add(1)
		s.mu.Unlock()
		c.open.Add(-1)
		return first, linux.Close(fd, nil)
	}
	s.m[d.Key] = d
	d.at = len(s.ring)
	s.ring = append(s.ring, d)
	s.mu.Unlock()
	c.Filled()
	return d, nil
}

// Room counts one more descriptor as open, and closes another if need be. What is dirty is
// synced before that if nothing else is left. With all in use it is vfs.ErrBusy.
func (c *Cache) Room() error {
	for cleaned := 0; ; {
		n := c.open.Load()
		if n < int64(c.Max) {
			if c.open.CompareAndSwap(n, n+1) {
				return nil
			}
			continue
		}
		if c.evict() {
			continue
		}
		if cleaned++; cleaned > maxCleaned || !c.Clean() {
			return fmt.Errorf("localfs: all %d descriptors are in use: %w", c.Max, vfs.ErrBusy)
		}
	}
}

func (c *Cache) evict() bool {
	first := c.turn.Add(1)
	for i := range uint32(shards) {
		if d := c.shards[(first+i)%shards].take(); d != nil {
			c.evicted.Add(1)
			c.shut(d)
			return true
		}
	}
	return false
}

// take moves the hand on to a descriptor that is idle and clean, and takes it out of the
// shard. If two rounds find none, it returns nil.
func (s *shard) take() *Desc {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 * len(s.ring) {
		s.hand = (s.hand + 1) % len(s.ring)
		d := s.ring[s.hand]
		if d.pins.Load() != 0 || d.Dirty.Load() || d.used.Swap(false) {
			continue
		}
		// To make it dirty a call must pin it first, which takes the shard's lock. Only a
		// call that cleans dirty descriptors pins without that lock (pinAgain).
		if d.pins.CompareAndSwap(0, deadBit) {
			s.remove(d)
			return d
		}
	}
	return nil
}

// remove takes d out of the shard. mu is held.
func (s *shard) remove(d *Desc) {
	delete(s.m, d.Key)
	last := len(s.ring) - 1
	s.ring[d.at] = s.ring[last]
	s.ring[d.at].at = d.at
	s.ring[last] = nil
	s.ring = s.ring[:last]
}

// AddOpen counts n descriptors more that are open elsewhere, or fewer if n is negative.
func (c *Cache) AddOpen(n int) { c.open.Add(int64(n)) }

// Unpin gives back what Get or Put returned. If the cache has let go of d meanwhile, the
// last call that unpins it closes it. That may wait until the disk has freed the blocks of
// a file without a name: see Last.
func (c *Cache) Unpin(d *Desc) {
	if d.pins.Add(-1) == deadBit {
		c.shut(d)
	}
}

// shut closes d, which is in the cache no longer.
func (c *Cache) shut(d *Desc) {
	if d.Dirty.Load() {
		c.orphaned(d)
		c.Dirty.Clean(d)
	}
	c.open.Add(-1)
	_ = unix.Close(d.FD) // nothing is left that could fail
}

// Forget takes the descriptors of h out of the cache, so that a deleted object's blocks
// become free. Idle ones are closed now, pinned ones as soon as they are unpinned.
func (c *Cache) Forget(h vfs.Handle) {
	s := c.shard(h)
	for _, u := range [...]Use{Path, Read, Write} {
		s.mu.Lock()
		d := s.m[Key{h, u}]
		if d != nil {
			s.remove(d)
		}
		s.mu.Unlock()
		if d != nil && d.pins.Add(deadBit) == deadBit {
			c.shut(d)
		}
	}
}

// Close closes all descriptors, after sync was called with each dirty one. None may be
// pinned.
func (c *Cache) Close(sync func(*Desc) error) (err error) {
	for d := c.Dirty.PinOldest(); d != nil; d = c.Dirty.PinOldest() {
		err = errors.Join(err, sync(d))
		c.Dirty.Clean(d)
		c.Unpin(d)
	}
	for i := range c.shards {
		s := &c.shards[i]
		for d := s.take(); d != nil; d = s.take() {
			c.shut(d)
		}
	}
	if n := c.open.Load(); n > 0 {
		return errors.Join(err, fmt.Errorf("localfs: closed with %d descriptors in use", n))
	}
	return err
}
