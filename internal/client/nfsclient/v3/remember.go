package v3

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// rememberedNames is how many names are remembered. A further one takes the
// place of another, and a RENAME of that one that was sent twice stays
// undecided.
const rememberedNames = 1024

// nameMemory knows, of names that were looked up or made lately, which object they
// stood for: not the object itself, but enough to recognize it. It is there for
// the rare RENAME of which nobody knows whether it was done, and must cost the
// frequent LOOKUP next to nothing: a slot is two words without a lock, and a
// slot that two have written to at once is no longer anyone's, since the words
// do not fit each other (as R. Hyatt and T. Mann store the positions of chess,
// "A lock-less transposition table implementation", 2002).
type nameMemory struct {
	seed  maphash.Seed
	slots [rememberedNames]struct{ check, object atomic.Uint64 }
}

// key stands for a name in a directory.
func (m *nameMemory) key(dir *vfs.Handle, name string) uint64 {
	return bits.RotateLeft64(maphash.Bytes(m.seed, dir.Bytes()), 1) ^ maphash.String(m.seed, name)
}

// object stands for what has handle h; 0 for nothing.
func (m *nameMemory) object(h *vfs.Handle) uint64 {
	if h.IsZero() {
		return 0
	}
	return max(maphash.Bytes(m.seed, h.Bytes()), 1) // 0 is not known
}

// note remembers that name in dir stands for h.
func (m *nameMemory) note(dir *vfs.Handle, name string, h *vfs.Handle) {
	m.set(m.key(dir, name), m.object(h))
}

// forget is called when name in dir stands for something else from now on, or
// may do so: what it has stood for would prove nothing about the next RENAME.
func (m *nameMemory) forget(dir *vfs.Handle, name string) { m.set(m.key(dir, name), 0) }

func (m *nameMemory) set(key, object uint64) {
	s := &m.slots[key%rememberedNames]
	s.object.Store(object)
	s.check.Store(object ^ key)
}

// recall returns what name in dir last stood for; 0 if that is not known.
func (m *nameMemory) recall(dir *vfs.Handle, name string) uint64 {
	key := m.key(dir, name)
	s := &m.slots[key%rememberedNames]
	if object := s.object.Load(); s.check.Load() == object^key {
		return object
	}
	return 0
}
