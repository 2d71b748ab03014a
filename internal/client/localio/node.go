package localio

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// node is the state of an object, for all callers. It exists while the object has open files or
// descriptors, or something about it must be remembered: see shared.leave.
type node struct {
	s    *shared
	h    vfs.Handle
	size atomic.Uint64 // last known: a read that ends before it needs no attributes
	verf atomic.Uint64 // the verifier of its writes; 0: the common one
	id   atomic.Pointer[identity]

	failed atomic.Pointer[flight] // the last that has failed, or nil

	// below is true while the server may have unstable bytes that came over the network; drains
	// says that writes may become local nevertheless.
	below, drains atomic.Bool

	mu       sync.Mutex
	files    int                  // open ones; mu guards this and what follows
	grants   map[key]*grant       // valid ones
	asks     map[key]*ask         // in flight
	refusals map[key]*refusal     // while there are open files
	dirty    map[*grant]dirtiness // with bytes that are not synced
	running  *flight
	next     *flight

	seq   uint64       // grows with each write over the network that leaves something to commit
	verfs vfs.Verifier // of the last of them that was answered, if known
	known bool
	doubt bool // what became of one is not known, and it may still be carried out

	refs int  // shared.mu: files, grants, asks and calls
	kept bool // shared.mu: it has none, and is remembered
}

// identity is what an object is called in attributes.
type identity struct {
	fsid   [2]uint64
	fileID uint64
}

// key tells the descriptors of an object apart.
type key struct {
	who    claim
	access vfs.Share
}

// learn takes note of attributes that came over the network.
func (n *node) learn(a *vfs.Attr) {
	if a.Has(vfs.MaskSize) {
		n.size.Store(a.Size)
	}
	if a.Has(vfs.MaskFSID | vfs.MaskFileID) {
		n.id.Store(&identity{a.FSID, a.FileID})
	}
}

// grow takes note that the file reaches to end at least.
func (n *node) grow(end uint64) {
	for {
		size := n.size.Load()
		if end <= size || n.size.CompareAndSwap(size, end) {
			return
		}
	}
}

// verifier is what writes carry that are about to be made, and what a commit
// answers that has been made.
func (n *node) verifier() (v vfs.Verifier) {
	u := n.verf.Load()
	if u == 0 {
		u = n.s.verf.Load()
	}
	binary.LittleEndian.PutUint64(v[:], u)
	return v
}

// lost has the writers of the object that have not committed write again: it
// cannot be said what has become of those bytes.
func (n *node) lost() {
	n.verf.Store(n.s.random())
	n.s.count.verifiers.Add(1)
}

// answered takes note of an unstable write that was answered over the network
// under verf.
func (n *node) answered(verf vfs.Verifier) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known && n.verfs != verf {
		n.lost() // what was written under the other one
	}
	n.seq++
	n.verfs, n.known = verf, true
	n.below.Store(true)
}

// unanswered takes note of a write over the network, or a change of size, that may
// still be carried out: no other byte of the object shall overtake it by a descriptor.
func (n *node) unanswered() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seq++
	n.doubt = true
	n.drains.Store(false)
	n.below.Store(true)
}

// remote reports whether writes have to go over the network: bytes that are
// unstable there have not been committed, and no commit is on its way.
func (n *node) remote() bool { return n.below.Load() && !n.drains.Load() }

// draining is called when a commit is about to go over the network, and returns
// what drained wants. From now on writes may be local again.
func (n *node) draining() (seq uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.doubt {
		n.drains.Store(true)
	}
	return n.seq
}

// drained takes note of a commit that was answered over the network under verf.
// It has covered what was answered before it was sent, and perhaps more.
func (n *node) drained(seq uint64, verf vfs.Verifier) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known && n.verfs != verf {
		n.lost()
		n.verfs = verf
	}
	if n.seq == seq {
		n.known, n.doubt = false, false
		n.below.Store(false)
		n.drains.Store(false)
	}
}
