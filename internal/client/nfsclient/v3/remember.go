package v3

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/vfs"
)

// rememberedNames bounds the names that are remembered. At the bound a further one replaces another.
// If a RENAME of the replaced one is sent twice, its outcome stays unknown.
const rememberedNames = 1024

// nameMemory remembers, for names that were looked up or made recently, a hash of their object's
// handle. It serves the rare RENAME with an unknown outcome, and must cost the frequent LOOKUP little.
// So a slot is two words without a lock. If two goroutines write to a slot at once, its words do not
// match, and it counts as empty (as R. Hyatt and T. Mann store the positions of chess, "A lock-less
// transposition table implementation", 2002).
type nameMemory struct {
	seed  maphash.Seed
	slots [rememberedNames]struct{ check, object atomic.Uint64 }
}

// key stands for a name in a directory.
func (m *nameMemory) key(dir *vfs.Handle, name string) uint64 {
	return bits.RotateLeft64(maphash.Bytes(m.seed, dir.Bytes()), 1) ^ maphash.String(m.seed, name)
}

// object is the hash of handle h; 0 for the zero handle.
func (m *nameMemory) object(h *vfs.Handle) uint64 {
	if h.IsZero() {
		return 0
	}
	return max(maphash.Bytes(m.seed, h.Bytes()), 1) // 0 means unknown
}

// note remembers that name in dir is h's.
func (m *nameMemory) note(dir *vfs.Handle, name string, h *vfs.Handle) {
	m.set(m.key(dir, name), m.object(h))
}

// forget is called when name in dir becomes another object's, or may do so: its old object would prove
// nothing about the next RENAME.
func (m *nameMemory) forget(dir *vfs.Handle, name string) { m.set(m.key(dir, name), 0) }

func (m *nameMemory) set(key, object uint64) {
	s := &m.slots[key%rememberedNames]
	s.object.Store(object)
	s.check.Store(object ^ key)
}

// recall returns the last known object of name in dir; 0 if it is unknown.
func (m *nameMemory) recall(dir *vfs.Handle, name string) uint64 {
	key := m.key(dir, name)
	s := &m.slots[key%rememberedNames]
	if object := s.object.Load(); s.check.Load() == object^key {
		return object
	}
	return 0
}
