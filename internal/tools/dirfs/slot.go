package dirfs

import (
	"container/list"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxSlots bounds the slots of directories, about 400 bytes each. At the bound the
	// least recently used one without slots below it is dropped, and handles that lead
	// through it are vfs.ErrStale.
	maxSlots = 1 << 17
	// maxForgotten bounds the slots among them that the caller has forgotten. At the bound
	// the one that was forgotten first is dropped.
	maxForgotten = 1 << 12
)

// slot is a directory that was listed or looked into. The handles of its entries hold its
// serial number. slots.mu guards its fields, except serial and id, which do not change.
type slot struct {
	serial uint64
	id     ident

	parent *slot // nil: the root
	name   string
	empty  bool // something is mounted on it, and it is shown as empty
	// moves says that this FS has removed or added names in it. Then an object that is
	// not where its handle says is searched for.
	moves bool

	dir   *hostDir // nil: not open
	below *slot    // the directory in it that was opened last
	pins  int      // calls that use dir
	holds int      // calls, listings, and slots whose parent it is
	lost  bool     // no longer in the table
	idle  *list.Element
	age   *list.Element // in used or forgotten; nil while held
	done  bool          // forgotten, and not used since
}

// slots is the table of known directories.
//
// Lock order: tree, then mu. Renames of directories lock tree; opening directories by their
// names locks it for reading.
type slots struct {
	tree sync.RWMutex

	mu        sync.Mutex
	root      *slot // always open
	last      uint64
	bySerial  map[uint64]*slot
	byID      map[ident]*slot
	used      list.List // least recently used first
	forgotten list.List // the one forgotten first comes first
	open      list.List // idle and open, least recently used first
	maxIdle   int
	opens     int // how many directories were ever opened
}

func (t *slots) start(top *hostDir, id ident, idle int) {
	t.root = &slot{serial: 1, id: id, dir: top, pins: 1}
	t.last, t.maxIdle = 1, idle
	t.bySerial = map[uint64]*slot{1: t.root}
	t.byID = map[ident]*slot{id: t.root}
}

// end closes all open directories.
func (t *slots) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.bySerial {
		if s.dir != nil {
			s.dir.close()
			s.dir = nil
		}
	}
	t.open.Init()
}

// of returns the slot that a handle was made in, held.
func (t *slots) of(r *ref) (*slot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.ofLocked(r)
	if err == nil {
		t.holdLocked(s)
	}
	return s, err
}

func (t *slots) ofLocked(r *ref) (*slot, error) {
	if s := t.bySerial[r.slot]; s != nil {
		return s, nil
	}
	if r.slot > t.last {
		return nil, vfs.ErrBadHandle
	}
	return nil, vfs.ErrStale
}

// find returns the slot of r's directory, held; nil if there is none.
func (t *slots) find(r *ref) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.known(r)
	if s != nil {
		t.holdLocked(s)
		s.done = false
	}
	return s
}

// add returns the slot of r's directory, which is called name in parent, held. If there is
// none it makes one, without looking whether the directory exists.
func (t *slots) add(r *ref, parent *slot, name string) (s *slot, made bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.known(r); s != nil { // made meanwhile
		t.holdLocked(s)
		return s, false, nil
	}
	if parent.lost {
		return nil, false, vfs.ErrStale
	}
	t.last++
	s = &slot{serial: t.last, id: r.id, parent: parent, name: name, holds: 1}
	t.holdLocked(parent)
	t.bySerial[s.serial], t.byID[s.id] = s, s
	t.trim()
	return s, true, nil
}

// known returns the slot of a directory; nil if it has none.
func (t *slots) known(r *ref) *slot {
	if r.slot == 0 {
		if r.id == t.root.id {
			return t.root
		}
		return nil
	}
	return t.byID[r.id]
}

func (t *slots) holdLocked(s *slot) {
	s.holds++
	if s.age != nil {
		t.ageList(s).Remove(s.age)
		s.age = nil
	}
}

func (t *slots) ageList(s *slot) *list.List {
	if s.done {
		return &t.forgotten
	}
	return &t.used
}

// drop ends a hold.
func (t *slots) drop(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropLocked(s)
	t.trim()
}

func (t *slots) dropLocked(s *slot) {
	if s.holds--; s.holds == 0 && s.parent != nil && !s.lost {
		s.age = t.ageList(s).PushBack(s)
	}
}

// forget notes that the caller is done with a directory.
func (t *slots) forget(id ident) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.parent == nil || s.done {
		return
	}
	if s.age != nil {
		t.used.Remove(s.age)
		s.age = t.forgotten.PushBack(s)
	}
	s.done = true
	t.trim()
}

// trim drops slots until the bounds are kept.
func (t *slots) trim() {
	for t.forgotten.Len() > maxForgotten {
		t.lose(t.forgotten.Front().Value.(*slot))
	}
	for len(t.bySerial) > maxSlots && t.used.Len() > 0 {
		t.lose(t.used.Front().Value.(*slot))
	}
}

// lose removes a slot from the table. A call that holds it can go on while it is open.
func (t *slots) lose(s *slot) {
	if s.lost || s.parent == nil {
		return
	}
	s.lost = true
	delete(t.bySerial, s.serial)
	if t.byID[s.id] == s {
		delete(t.byID, s.id)
	}
	if s.age != nil {
		t.ageList(s).Remove(s.age)
		s.age = nil
	}
	if s.idle != nil {
		t.closeIdle(s)
	}
	if s.parent.below == s {
		s.parent.below = nil
	}
	t.dropLocked(s.parent)
}

// closeIdle closes a directory that no call uses.
func (t *slots) closeIdle(s *slot) {
	t.open.Remove(s.idle)
	s.idle = nil
	s.dir.close()
	s.dir = nil
}

// removed notes that the directory was removed.
func (t *slots) removed(id ident) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.byID[id]; s != nil {
		t.lose(s)
	}
}

// renamed notes the directory's new place. The caller has locked tree.
func (t *slots) renamed(id ident, to *slot, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.parent == nil || to.lost {
		return
	}
	if s.parent != to {
		if s.parent.below == s {
			s.parent.below = nil
		}
		t.holdLocked(to)
		from := s.parent
		s.parent = to
		t.dropLocked(from)
	}
	s.name = name
	for dirsArePaths && t.open.Len() > 0 {
		t.closeIdle(t.open.Front().Value.(*slot))
	}
}

// changed notes that this FS has removed or added names in s.
func (t *slots) changed(s *slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.moves = true
}
