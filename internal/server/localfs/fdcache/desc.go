//go:build linux

package fdcache

import (
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// Use is what a descriptor is good for.
type Use uint8

const (
	Path  Use = iota // a reference: O_PATH
	Read             // O_RDONLY
	Write            // O_WRONLY
)

// Key is what a descriptor is found by.
type Key struct {
	H   vfs.Handle
	Use Use
}

// Desc is an open descriptor, for what Key says.
type Desc struct {
	Key
	FD   int
	Kind uint16 // S_IFMT bits

	// pins counts the calls that use FD, and has deadBit once the cache has let go of it.
	// The call that brings it down to deadBit closes FD.
	pins atomic.Int64
	// used says that a call has pinned the descriptor since the hand of its shard or the
	// sweeper came by.
	used atomic.Bool
	// idle counts the sweeper's looks since a call last used the descriptor.
	idle atomic.Int32

	// ACL is package localfs's: whether the object has an access control list, and with
	// which ctime that was so (hasACL).
	ACL atomic.Int64
	// Depth is package localfs's: how far below the root a directory was found the last
	// time (beneath); 0: not known.
	Depth atomic.Int32
	// Stripe is package localfs's: 1 + the number of the object's lock; 0: not known.
	Stripe atomic.Int32
	// Dirty says that data was written through FD and not synced since. Such a descriptor
	// stays open: the kernel reports a failed write-back to descriptors that are open
	// then, and perhaps never to a later one. See DirtyList.
	Dirty atomic.Bool

	at int // in shard.ring; guarded by shard.mu

	newer, older *Desc // in the DirtyList while dirty; guarded by its mu
}

const deadBit = 1 << 62

// Last reports whether Unpin will close d: the cache has let go of it, and no other call
// uses it.
func (d *Desc) Last() bool { return d.pins.Load() == deadBit+1 }

// pinAgain pins d for a call that did not get it from the cache. It returns false if d is
// being closed.
func (d *Desc) pinAgain() bool {
	for {
		n := d.pins.Load()
		if n == deadBit {
			return false
		}
		if d.pins.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
