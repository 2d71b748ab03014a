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
	ACL atomic.Int64
	// depth is how far below the root a directory was found the last time; 0:
	// not known. See beneath.
	Depth atomic.Int32
	// stripe is 1 + the number of the object's lock; 0: not known. See stripe.
	Stripe atomic.Int32
	// dirty says that data was written through fd and not synced since. Such a
	// descriptor stays open: the kernel reports an error of the disk to descriptors
	// that are open then, and perhaps never to a later one. See DirtyList.
	Dirty atomic.Bool

	at int // in fdShard.ring; guarded by fdShard.mu

	newer, older *Desc // in dirt's list while dirty; guarded by dirt.mu
}

const deadBit = 1 << 62

// Last reports whether the caller is the last one to use d, and the cache has let go of it:
// to unpin it closes it.
func (d *Desc) Last() bool { return d.pins.Load() == deadBit+1 }

// pinAgain pins d for a call that did not get it from the cache. It answers false if d
// is being closed.
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
