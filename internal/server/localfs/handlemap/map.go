//go:build linux

package handlemap

import (
	"encoding/binary"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// Map numbers objects and remembers their names. Its methods may be called concurrently; a
// directory that is handed in is pinned by the caller.
type Map struct {
	o     Options
	dirfd int // Options.StateDir, locked; -1: volatile
	by    Identifier
	log   *log

	// moving is held for reading while a rename is under way, and for writing by
	// a call that has not found an object and must know whether it is gone.
	moving sync.RWMutex

	mu        sync.Mutex
	nonce     [8]byte
	serial    uint64
	slots     []slot
	free      []uint32
	index     map[linux.Ident]uint32
	more      map[uint32][]loc // further names of objects that have several
	names     int              // known names
	records   int              // in the file, dead or alive
	compactAt int              // records at which a compaction is worth a try
	most      int              // objects: MaxMapEntries
	sweep     sweep
}

// handleMap is the first byte of a handle of the map: of what it is made, in which
// version.
const handleMap = 0x02

const (
	rootSlot   = 0
	rootSerial = 1
	handleSize = 1 + 8 + 4 + 8

	// compactSlack is how many dead records are not worth a compaction.
	CompactSlack = 4096
)

func (m *Map) pack(i uint32) vfs.Handle {
	var b [handleSize]byte
	b[0] = handleMap
	copy(b[1:], m.nonce[:])
	binary.BigEndian.PutUint32(b[9:], i)
	binary.BigEndian.PutUint64(b[13:], m.slots[i].serial)
	x, _ := vfs.MakeHandle(b[:]) // 21 bytes are never too many
	return x
}

func (m *Map) slotOf(x vfs.Handle) (uint32, error) {
	b := x.Bytes()
	if len(b) != handleSize || b[0] != handleMap {
		return 0, vfs.ErrBadHandle
	}
	i, serial := binary.BigEndian.Uint32(b[9:]), binary.BigEndian.Uint64(b[13:])
	if string(b[1:9]) != string(m.nonce[:]) || int64(i) >= int64(len(m.slots)) || serial == 0 || m.slots[i].serial != serial {
		return 0, vfs.ErrStale
	}
	return i, nil
}

// Size is how many objects the map knows, in how many slots, and how many records its file
// has, dead or alive.
func (m *Map) Size() (objects, slots, records int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.index), len(m.slots), m.records
}

// SetMost is for tests: a map of n objects is full.
func (m *Map) SetMost(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = n
}

// CopiesUp reports whether an object may come to look like another one when it is written
// to: see Identifier.
func (m *Map) CopiesUp() bool { return m.by.copiesUp }

// Root is the handle of the tree's top directory.
func (m *Map) Root() (vfs.Handle, error) { return m.pack(rootSlot), nil }

// WaitStable waits until the log is on disk up to at. After an error no handle can be given
// out any more.
func (m *Map) WaitStable(at LSN) error { return m.log.waitStable(at) }

// Stable reports whether WaitStable(at) need not wait.
func (m *Map) Stable(at LSN) bool { return m.log.stable(at) }

// Close makes the log stable, and unlocks the state directory.
func (m *Map) Close() error {
	err := m.log.close()
	if m.dirfd >= 0 {
		err = linux.Close(m.dirfd, err) // and unlocked
		m.dirfd = -1
	}
	return err
}

// sweep is where a sweep of the map stands. It is guarded by Map.mu.
type sweep struct {
	next  uint32 // slot; 0: no sweep is under way
	at    int    // objects at which the next begins
	pause int    // looks before it may
	full  bool   // an object had to do without a handle: as if at were reached
}

// loc is a place where an object is, or was.
type loc struct {
	off    int64 // of the bind that tells the name; 0: no place
	parent uint32
	hash   uint32 // of the name
}

// slot is an object. It is 40 bytes; the index takes about as much again.
type slot struct {
	id     linux.Ident
	serial uint64 // 0: free
	first  loc
}
