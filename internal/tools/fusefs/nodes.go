//go:build linux

package fusefs

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// rootID is the kernel's number of the root (FUSE_ROOT_ID).
const rootID = 1

// node is an object that the kernel knows.
type node struct {
	id  uint64
	key string // the handle's bytes

	lookups uint64 // that the kernel has not forgotten; guarded by nodes.mu, as are up and name
	up      *node  // the directory in which it was last seen; nil: the root
	name    string // its name there

	mu     sync.Mutex // guards what follows
	told   stamp      // what the kernel was told last
	pages  stamp      // what the last open found
	at     time.Time  // when
	keep   time.Duration
	most   time.Duration        // that keep may become
	ino    uint64               // its inode number as the kernel was told; 0: not yet
	shared bool                 // of a directory: everybody may search it
	owners map[uint64]*openFile // of locks that were asked for
	mixed  int                  // opens to read and write, by which pages can be mapped and changed

	inherits   inherits // of a directory, as was heard at inheritsAt
	inheritsAt time.Time

	lists    *lists    // nil: not known
	epoch    uint64    // of the lists: another one begins whenever they may have changed
	believed time.Time // until when the kernel believes what it was told
}

// handle is the object's handle.
func (n *node) handle() vfs.Handle {
	h, err := vfs.MakeHandle([]byte(n.key))
	if err != nil {
		panic("fusefs: the table holds a handle that is none") // only handles enter it
	}
	return h
}

// number is the object's inode number, as far as the kernel was told it; 0: it was not.
func (n *node) number() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ino
}

// numbered notes the number that the kernel is told.
func (n *node) numbered(ino uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ino = ino
}

// place is where a node was last seen: a name in a directory.
type place struct {
	dir  uint64
	name string
}

// nodes is the table of what the kernel knows.
type nodes struct {
	mu   sync.Mutex
	byID map[uint64]*node
	byFH map[string]*node
	at   map[place]*node // for renames, which say no more than names
	next uint64
	most int // entries since the maps were made
}

func newNodes(root vfs.Handle) *nodes {
	t := &nodes{next: rootID}
	t.remake()
	t.look(root, nil, "") // which the kernel never forgets
	return t
}

// look is the node of a handle, with one look-up more. It was seen in the directory up, by that name.
func (t *nodes) look(h vfs.Handle, up *node, name string) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byFH[string(h.Bytes())]
	if n == nil {
		n = &node{id: t.next, key: string(h.Bytes())}
		t.next++
		t.byID[n.id], t.byFH[n.key] = n, n
		t.most = max(t.most, len(t.byID))
	}
	n.lookups++
	t.put(n, up, name)
	return n
}

// label is the name by which a file was last seen.
func (t *nodes) label(n *node) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.name
}

// put notes where n is. nodes.mu is held.
func (t *nodes) put(n, up *node, name string) {
	if n.id == rootID || up == nil || n.up == up && n.name == name {
		return
	}
	t.leave(n)
	n.up, n.name = up, name
	t.at[place{up.id, name}] = n
}

// leave forgets that n is where it was last seen, unless another object has that name by now. nodes.mu is held.
func (t *nodes) leave(n *node) {
	if n.up != nil && t.at[place{n.up.id, n.name}] == n {
		delete(t.at, place{n.up.id, n.name})
	}
}

// rename notes that what was called from in one directory is called to in another.
func (t *nodes) rename(fromDir *node, from string, toDir *node, to string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.at[place{fromDir.id, from}]; n != nil {
		t.put(n, toDir, to)
	}
}

// path is a node's path below the root, as last known. It is for messages: what another host has renamed has its old
// one, and of very deep ones the end is shown.
func (t *nodes) path(n *node) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for ; n.up != nil; n = n.up {
		if len(names) == maxShown {
			names = append(names, "...")
			break
		}
		names = append(names, n.name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// get is the node of a number; nil if the kernel has made it up.
func (t *nodes) get(id uint64) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// forget undoes look, count times.
func (t *nodes) forget(id, count uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.byID[id]
	if n == nil || id == rootID {
		return
	}
	if n.lookups -= min(count, n.lookups); n.lookups > 0 {
		return
	}
	delete(t.byID, n.id)
	delete(t.byFH, n.key)
	t.leave(n)
	if t.most >= shrinkAt && len(t.byID) < t.most/4 {
		t.remake()
	}
}

// remake makes the maps anew: a map keeps the memory of its most entries. nodes.mu is held.
func (t *nodes) remake() {
	byID, byFH := make(map[uint64]*node, len(t.byID)), make(map[string]*node, len(t.byFH))
	for id, n := range t.byID {
		byID[id], byFH[n.key] = n, n
	}
	at := make(map[place]*node, len(t.at))
	maps.Copy(at, t.at)
	t.byID, t.byFH, t.at, t.most = byID, byFH, at, len(byID)
}

func (t *nodes) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
