//go:build linux

package localfs

import (
	"container/list"
	"fmt"
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
// rights and shared by all callers: whoever uses it on behalf of a caller checks
// that caller first.
type desc struct {
	key  descKey
	fd   int
	kind uint16 // S_IFMT bits

	// acl remembers whether the object has an access control list, and under
	// which ctime that was true: see hasACL.
	acl atomic.Int64
	// depth is how far below the root a directory was found the last time; 0:
	// not known. See beneath.
	depth atomic.Int32
	// dirty says that data was written through fd and not synced since. Such a
	// descriptor is synced before it is closed: an error of the disk is told to
	// the descriptors that are open, and a later one may never hear of it.
	dirty atomic.Bool

	// Guarded by fdCache.mu.
	refs   int
	idle   *list.Element // in fdCache.idle while refs is 0
	cached bool          // in fdCache.m
}

// fdCache keeps descriptors open between calls. All methods may be called
// concurrently.
type fdCache struct {
	max  int
	sync func(*desc) error // makes a dirty desc clean

	mu   sync.Mutex
	m    map[descKey]*desc
	idle *list.List // of *desc, the longest unused in front
	open int        // descriptors that are open, forgotten ones included
}

func newFDCache(max int, sync func(*desc) error) *fdCache {
	return &fdCache{max: max, sync: sync, m: make(map[descKey]*desc), idle: list.New()}
}

// get returns the descriptor of h, pinned, or nil.
func (c *fdCache) get(h vfs.Handle, u use) *desc {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.m[descKey{h, u}]
	if d != nil {
		c.pin(d)
	}
	return d
}

func (c *fdCache) pin(d *desc) {
	d.refs++
	if d.idle != nil {
		c.idle.Remove(d.idle)
		d.idle = nil
	}
}

// put adds fd, which now belongs to the cache, also when put fails, and returns
// it pinned. If another came first, that one is returned and fd closed.
func (c *fdCache) put(h vfs.Handle, u use, fd int, kind uint16) (*desc, error) {
	if err := c.room(); err != nil {
		return nil, closing(fd, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := descKey{h, u}
	if d := c.m[k]; d != nil {
		c.pin(d)
		c.open--
		return d, closing(fd, nil)
	}
	d := &desc{key: k, fd: fd, kind: kind, refs: 1, cached: true}
	c.m[k] = d
	return d, nil
}

// room takes a place for one more descriptor, closing another if need be.
func (c *fdCache) room() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.max + 1 {
		if c.open < c.max {
			c.open++
			return nil
		}
		front := c.idle.Front()
		if front == nil {
			return fmt.Errorf("localfs: all %d descriptors are in use: %w", c.max, vfs.ErrBusy)
		}
		d := front.Value.(*desc)
		if !d.dirty.Load() {
			c.drop(d)
			continue
		}
		// Whatever becomes of the sync, the descriptor need not wait for it any
		// longer: an error has changed the write verifier.
		c.pin(d)
		c.mu.Unlock()
		_ = c.sync(d)
		c.mu.Lock()
		c.unpinLocked(d)
	}
	return fmt.Errorf("localfs: descriptors become dirty faster than the disk syncs them: %w", vfs.ErrBusy)
}

// lend counts n more descriptors that are open for others, or fewer.
func (c *fdCache) lend(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
}

// drop takes an idle desc out and closes it.
func (c *fdCache) drop(d *desc) {
	c.idle.Remove(d.idle)
	d.idle = nil
	if d.cached {
		delete(c.m, d.key)
		d.cached = false
	}
	c.open--
	_ = unix.Close(d.fd) // it is clean: there is nothing left to fail
}

// unpin gives back what get or put returned.
func (c *fdCache) unpin(d *desc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unpinLocked(d)
}

func (c *fdCache) unpinLocked(d *desc) {
	d.refs--
	if d.refs > 0 {
		return
	}
	d.idle = c.idle.PushBack(d)
	if !d.cached {
		c.drop(d)
	}
}

// forget makes the cache let go of h, so that a deleted object's blocks become
// free: idle descriptors are closed, pinned ones as soon as they are given back.
func (c *fdCache) forget(h vfs.Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range []use{usePath, useRead, useWrite} {
		d := c.m[descKey{h, u}]
		if d == nil {
			continue
		}
		delete(c.m, d.key)
		d.cached = false
		if d.refs == 0 {
			c.drop(d)
		}
	}
}

// close syncs what is dirty and closes what is idle. Nothing may be pinned.
func (c *fdCache) close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for front := c.idle.Front(); front != nil; front = c.idle.Front() {
		d := front.Value.(*desc)
		if d.dirty.Load() {
			c.mu.Unlock()
			if e := c.sync(d); e != nil {
				err = e
			}
			c.mu.Lock()
		}
		c.drop(d)
	}
	if c.open > 0 {
		return fmt.Errorf("localfs: closed with %d descriptors in use", c.open)
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
