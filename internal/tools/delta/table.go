package delta

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// slotBytes is what an entry takes in a table beside its packed form: its slot, and what the
// allocator rounds up.
const slotBytes = 40

// slot is an entry of a table.
type slot struct {
	hash uint64
	e    packed // empty: it was taken
}

// table holds the entries of a right directory whose names' hashes lie in a range, and which have
// not been taken. The range of a new one is that of all hashes. Its methods may be called
// concurrently: faults of directories below come at any time.
type table struct {
	budget *budget

	mu          sync.Mutex
	first, last uint64    // the range, both ends in it
	slots       []slot    // ascending, once sorted
	bytes       int       // that were taken from the budget
	each        int       // bytes of an entry, on the average, when they were sorted
	fsid        [2]uint64 // of the entry that was first
	buf         []byte
}

func newTable(b *budget) *table { return &table{budget: b, last: math.MaxUint64} }

// wants reports whether a hash lies in the range.
func (t *table) wants(hash uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.has(hash)
}

func (t *table) has(hash uint64) bool { return t.first <= hash && hash <= t.last }

// size is how much of the budget an entry takes that is packed into n bytes.
func size(n int) int { return n + slotBytes }

// add holds an entry, if its hash is in the range. If there is no room for it, the range is cut
// down, and what falls out is let go, until there is.
func (t *table) add(hash uint64, e *vfs.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.has(hash) {
		return
	}
	if t.each == 0 && len(t.slots) == 0 {
		t.fsid = e.Attr.FSID
	}
	t.buf = packInto(t.buf[:0], e, t.fsid)
	n := size(len(t.buf))
	for t.has(hash) && !t.budget.take(t.bytes, n) {
		if t.first == t.last { // one name many times, or two names with one hash
			t.budget.give(-n)
			break
		}
		t.shrink()
	}
	if t.has(hash) {
		t.bytes += n
		t.slots = append(t.slots, slot{hash, packed(t.buf)})
	}
}

// whole reports whether all hashes are in the range.
func (t *table) whole() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first == 0 && t.last == math.MaxUint64
}

// shrink leaves the lower three quarters of the range.
func (t *table) shrink() {
	t.last = t.first + (t.last-t.first)/4*3
	t.slots = slices.DeleteFunc(t.slots, func(s slot) bool {
		out := !t.has(s.hash)
		if out {
			t.drop(&s)
		}
		return out
	})
}

// drop lets the entry of a slot go.
func (t *table) drop(s *slot) {
	n := size(len(s.e))
	t.budget.give(n)
	t.bytes -= n
	s.e = ""
}

// sort makes the table ready for take. Of entries with one name it leaves one.
func (t *table) sort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortFunc(t.slots, func(a, b slot) int {
		if c := cmp.Compare(a.hash, b.hash); c != 0 {
			return c
		}
		return cmp.Compare(a.e.name(), b.e.name())
	})
	kept := t.slots[:0]
	for _, s := range t.slots {
		if n := len(kept); n > 0 && kept[n-1].hash == s.hash && kept[n-1].e.name() == s.e.name() {
			t.drop(&s)
			continue
		}
		kept = append(kept, s)
	}
	clear(t.slots[len(kept):])
	if t.slots = kept; len(kept) > 0 {
		t.each = t.bytes / len(kept)
	}
}

// take removes the entry with a name, and returns it; nil if there is none.
func (t *table) take(hash uint64, name string) *vfs.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, _ := slices.BinarySearchFunc(t.slots, hash, func(s slot, hash uint64) int { return cmp.Compare(s.hash, hash) })
	for ; i < len(t.slots) && t.slots[i].hash == hash; i++ {
		if s := &t.slots[i]; s.e != "" && s.e.name() == name {
			e := s.e.unpack(t.fsid)
			t.drop(s)
			return e
		}
	}
	return nil
}

// pop removes up to n entries that have not been taken.
func (t *table) pop(n int) (some []*vfs.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.slots) > 0 && len(some) < n {
		s := &t.slots[len(t.slots)-1]
		if s.e != "" {
			some = append(some, s.e.unpack(t.fsid))
			t.drop(s)
		}
		t.slots = t.slots[:len(t.slots)-1]
	}
	return some
}

// clear lets all entries go.
func (t *table) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.budget.give(t.bytes)
	t.slots, t.bytes = nil, 0
}

// next moves on to the range behind the present one, where a directory of so many entries fills
// seven eighths of the room that there is. It returns false behind the last range.
func (t *table) next(entries int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == math.MaxUint64 {
		return false
	}
	t.first, t.last = t.last+1, math.MaxUint64
	if room, all := t.budget.room()/8*7, entries*t.each; room < all {
		width, _ := bits.Div64(uint64(room), 0, uint64(all)) // of 1<<64
		if last := t.first + width; last >= t.first {
			t.last = last
		}
	}
	return true
}
