//go:build linux

package localfs

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// use is what a descriptor is good for.
type use uint8

const (
	usePath  use = iota // a reference: O_PATH
	useRead             // O_RDONLY
	useWrite            // O_WRONLY
)

type descKey struct {
	h   vfs.Handle
	use use
}

// desc is an open descriptor. It is opened by the server with the server's
// rights and shared by all callers: a call that uses it on behalf of a caller checks
// that caller first.
type desc struct {
	key  descKey
	fd   int
	kind uint16 // S_IFMT bits

	// pins counts the calls that use fd, and has deadBit once the cache has let go of it.
	// The call that brings it to deadBit alone closes fd.
	pins atomic.Int64
	// used says that d was pinned since the hand of its shard last passed, or the
	// sweeper looked.
	used atomic.Bool
	// idle counts the sweeper's looks since.
	idle atomic.Int32

	// acl remembers whether the object has an access control list, and under
	// which ctime that was true: see hasACL.
	acl atomic.Int64
	// depth is how far below the root a directory was found the last time; 0:
	// not known. See beneath.
	depth atomic.Int32
	// stripe is 1 + the number of the object's lock; 0: not known. See stripe.
	stripe atomic.Int32
	// dirty says that data was written through fd and not synced since. Such a
	// descriptor stays open: an error of the disk is told to the descriptors
	// that are open, and a later one may never hear of it. See dirt.
	dirty atomic.Bool

	at int // in fdShard.ring; guarded by fdShard.mu

	newer, older *desc // in dirt's list while dirty; guarded by dirt.mu
}

const deadBit = 1 << 62

// fdCache keeps descriptors open between calls. All methods may be called
// concurrently. A call that finds a descriptor takes the lock of one shard for a map's
// look-up; one that gives it back takes none.
type fdCache struct {
	max    int
	seed   maphash.Seed
	open   atomic.Int64 // descriptors that are open, forgotten ones included
	turn   atomic.Uint32
	dirt   dirt
	shards [fdShards]fdShard

	// orphaned is told of a dirty descriptor that is closed because its object
	// seemed to have lost its last name.
	orphaned func(*desc)
	// clean makes what is dirty clean, one at least, and reports whether it has.
	clean func() bool
	// filled is told that there is something in the cache.
	filled  func()
	evicted atomic.Uint64 // closed to make room
	idled   atomic.Uint64 // closed because nobody used them
}

// fdShard is a part of the cache. Its ring is walked by a hand that passes once
// over what was used since the last time (the clock algorithm), and takes the
// next that nobody pins.
type fdShard struct {
	mu   sync.Mutex
	m    map[descKey]*desc
	ring []*desc
	hand int

	hits, misses uint64
	_            [64]byte // shards share no line of the processor's cache
}

func newFDCache(max int, orphaned func(*desc)) *fdCache {
	c := &fdCache{max: max, seed: maphash.MakeSeed(), orphaned: orphaned, clean: func() bool { return false }, filled: func() {}}
	for i := range c.shards {
		c.shards[i].m = make(map[descKey]*desc)
	}
	return c
}

func (c *fdCache) shard(h vfs.Handle) *fdShard {
	return &c.shards[maphash.Bytes(c.seed, h.Bytes())%fdShards]
}

// get returns the descriptor of h, pinned, or nil.
func (c *fdCache) get(h vfs.Handle, u use) *desc {
	s := c.shard(h)
	s.mu.Lock()
	d := s.m[descKey{h, u}]
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

// getAny is get for a call that needs a reference to h only, for which any use will do.
func (c *fdCache) getAny(h vfs.Handle) (d *desc) {
	s := c.shard(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range [...]use{usePath, useWrite, useRead} {
		if d = s.m[descKey{h, u}]; d != nil {
			s.hits++
			d.pins.Add(1)
			d.used.Store(true)
			return d
		}
	}
	s.misses++
	return nil
}

// put adds fd, which now belongs to the cache, also when put fails, and returns
// it pinned. If another came first, that one is returned and fd closed.
func (c *fdCache) put(h vfs.Handle, u use, fd int, kind uint16) (*desc, error) {
	if err := c.room(); err != nil {
		return nil, closing(fd, err)
	}
	d := &desc{key: descKey{h, u}, fd: fd, kind: kind}
	d.pins.Store(1)
	s := c.shard(h)
	s.mu.Lock()
	if first := s.m[d.key]; first != nil {
		first.pins.Add(1)
		s.mu.Unlock()
		c.open.Add(-1)
		return first, closing(fd, nil)
	}
	s.m[d.key] = d
	d.at = len(s.ring)
	s.ring = append(s.ring, d)
	s.mu.Unlock()
	c.filled()
	return d, nil
}

// room takes a place for one more descriptor, closing another if need be. What
// is dirty is synced before, if nothing else is left: dirt sees to it that this is
// rare.
func (c *fdCache) room() error {
	for cleaned := 0; ; {
		n := c.open.Load()
		if n < int64(c.max) {
			if c.open.CompareAndSwap(n, n+1) {
				return nil
			}
			continue
		}
		if c.evict() {
			continue
		}
		if cleaned++; cleaned > maxTidy || !c.clean() {
			return fmt.Errorf("localfs: all %d descriptors are in use: %w", c.max, vfs.ErrBusy)
		}
	}
}

// evict closes one descriptor that nobody uses.
func (c *fdCache) evict() bool {
	first := c.turn.Add(1)
	for i := range uint32(fdShards) {
		if d := c.shards[(first+i)%fdShards].take(); d != nil {
			c.evicted.Add(1)
			c.shut(d)
			return true
		}
	}
	return false
}

// take moves the hand on to a descriptor that is idle and clean, and lets go of
// it. After two rounds there is none.
func (s *fdShard) take() *desc {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 2 * len(s.ring) {
		s.hand = (s.hand + 1) % len(s.ring)
		d := s.ring[s.hand]
		if d.pins.Load() != 0 || d.dirty.Load() || d.used.Swap(false) {
			continue
		}
		// What is clean and idle becomes dirty only after it was pinned, and
		// that takes the shard's lock, but for a call that cleans it.
		if d.pins.CompareAndSwap(0, deadBit) {
			s.remove(d)
			return d
		}
	}
	return nil
}

// remove takes d out of the shard. mu is held.
func (s *fdShard) remove(d *desc) {
	delete(s.m, d.key)
	last := len(s.ring) - 1
	s.ring[d.at] = s.ring[last]
	s.ring[d.at].at = d.at
	s.ring[last] = nil
	s.ring = s.ring[:last]
}

// lend counts n more descriptors that are open for others, or fewer.
func (c *fdCache) lend(n int) { c.open.Add(int64(n)) }

// unpin gives back what get or put returned. The last call to use what was
// forgotten closes it, and may wait for the disk to free the blocks of a file
// without a name: that takes a place of the gate (see FS.release).
func (c *fdCache) unpin(d *desc) {
	if d.pins.Add(-1) == deadBit {
		c.shut(d)
	}
}

// shut closes d, which nobody can reach any more.
func (c *fdCache) shut(d *desc) {
	if d.dirty.Load() {
		c.orphaned(d)
		c.dirt.clean(d)
	}
	c.open.Add(-1)
	_ = unix.Close(d.fd) // nothing is left that could fail
}

// forget makes the cache let go of h, so that a deleted object's blocks become
// free: idle descriptors are closed, pinned ones as soon as they are given back.
func (c *fdCache) forget(h vfs.Handle) {
	s := c.shard(h)
	for _, u := range [...]use{usePath, useRead, useWrite} {
		s.mu.Lock()
		d := s.m[descKey{h, u}]
		if d != nil {
			s.remove(d)
		}
		s.mu.Unlock()
		if d != nil && d.pins.Add(deadBit) == deadBit {
			c.shut(d)
		}
	}
}

// close closes what is idle, after sync has made it clean. Nothing may be
// pinned.
func (c *fdCache) close(sync func(*desc) error) (err error) {
	for d := c.dirt.pinOldest(); d != nil; d = c.dirt.pinOldest() {
		if e := sync(d); e != nil {
			err = e
		}
		c.dirt.clean(d)
		c.unpin(d)
	}
	for i := range c.shards {
		s := &c.shards[i]
		for d := s.take(); d != nil; d = s.take() {
			c.shut(d)
		}
	}
	if n := c.open.Load(); n > 0 {
		return fmt.Errorf("localfs: closed with %d descriptors in use", n)
	}
	return err
}

// closing closes fd and returns err, or what closing it said.
func closing(fd int, err error) error {
	if e := unix.Close(fd); err == nil && e != nil {
		return fail("close", e)
	}
	return err
}
