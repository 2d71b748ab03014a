//go:build linux

package localfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// mapHandles numbers the objects and remembers what they are called: for
// containers and processes without privilege, whom the kernel gives no handles.
// A handle is
//
//	byte     version: handleMap
//	[8]byte  the map's nonce
//	uint32   slot, big endian
//	uint64   serial: slots are used again, serials are not
//
// It survives restarts, and renames that are made through this FS. What was
// renamed behind its back is searched for where it was; if it is not there under
// any name, it is stale. An inode number that is used again is told from the old
// one by the time of birth, except on overlayfs, where copying a file up gives
// it a new one, and on file systems that keep none.
type mapHandles struct {
	h     *host
	dirfd int // Options.StateDir, locked; -1: volatile
	byIno bool
	log   *mapLog

	mu      sync.Mutex
	nonce   [8]byte
	serial  uint64
	slots   []slot
	free    []uint32
	index   map[ident]uint32
	more    map[uint32][]loc // further names of objects that have several
	names   int              // known names
	records int              // in the file, dead or alive
	patient int              // records at which a compaction is worth a try
}

// loc is a place where an object is, or was.
type loc struct {
	off    int64 // of the bind that tells the name; 0: no place
	parent uint32
	hash   uint32 // of the name
}

// slot is an object. It is 40 bytes; the index takes about as much again.
type slot struct {
	id     ident
	serial uint64 // 0: free
	first  loc
}

const (
	rootSlot      = 0
	rootSerial    = 1
	mapHandleSize = 1 + 8 + 4 + 8

	// compactSlack is how many dead records are not worth a compaction.
	compactSlack = 4096
)

func hashName[T string | []byte](name T) uint32 { return crc32.Checksum([]byte(name), castagnoli) }

// newMapHandles opens the map in the state directory, or begins one.
func newMapHandles(h *host) (_ handler, err error) {
	m := &mapHandles{h: h, dirfd: -1, index: make(map[ident]uint32), more: make(map[uint32][]loc)}
	if err := m.openDir(); err != nil {
		return nil, err
	}
	m.log = newMapLog(h.sys, m.dirfd)
	if err := m.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("map of handles in %q: %w", h.o.StateDir, err), m.close())
	}
	return m, nil
}

// openDir opens and locks the state directory.
func (m *mapHandles) openDir() (err error) {
	o := &m.h.o
	if o.StateDir == "" {
		if !o.Volatile {
			return fmt.Errorf("the kernel gives no handles here, and there is no state directory to keep a map of them in: %w", vfs.ErrInval)
		}
		return nil
	}
	fd, err := unix.Open(o.StateDir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("state directory %q: %w", o.StateDir, fail("open", err))
	}
	if in, err := m.h.beneath(fd); err != nil || in {
		if err == nil {
			err = fmt.Errorf("state directory %q lies within the tree that is served: %w", o.StateDir, vfs.ErrInval)
		}
		return closing(fd, err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return closing(fd, fmt.Errorf("state directory %q is in use: %w", o.StateDir, fail("flock", err)))
	}
	m.dirfd = fd
	return nil
}

// load reads the map, or begins a new one.
func (m *mapHandles) load() error {
	var sfs unix.Statfs_t
	if err := unix.Fstatfs(m.h.rootFD, &sfs); err != nil {
		return fail("fstatfs", err)
	}
	m.byIno = int64(sfs.Type) == unix.OVERLAYFS_SUPER_MAGIC
	var st stat
	if err := st.statFD(m.h.rootFD); err != nil {
		return fail("statx", err)
	}
	root := m.ident(&st)
	if m.dirfd >= 0 {
		err := m.log.load(func(hd *header) error { return m.begin(hd, root) }, m.apply)
		if !isNoMap(err) {
			m.gather()
			return err
		}
	}
	m.h.o.Rand(m.nonce[:])
	m.serial = rootSerial
	m.slots = []slot{{id: root, serial: rootSerial}}
	m.index[root] = rootSlot
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.compact()
}

// begin takes the header of a file that was there.
func (m *mapHandles) begin(hd *header, root ident) error {
	if hd.root != root {
		return fmt.Errorf("it belongs to another directory, of inode %d: %w", hd.root.ino, vfs.ErrInval)
	}
	m.nonce, m.serial = hd.nonce, hd.serial
	m.slots = make([]slot, max(hd.slots, 1))
	m.slots[rootSlot] = slot{id: root, serial: rootSerial}
	m.index[root] = rootSlot
	return nil
}

// apply repeats what a record tells.
func (m *mapHandles) apply(r *record, off int64) error {
	m.records++
	switch {
	case r.typ == recSynced:
		return nil
	case r.slot == rootSlot || int(r.slot) > len(m.slots) || r.slot >= MaxMapEntries:
		return fmt.Errorf("slot %d", r.slot)
	case int(r.slot) == len(m.slots):
		m.slots = append(m.slots, slot{})
	}
	switch s := &m.slots[r.slot]; r.typ {
	case recBind:
		if s.serial != r.serial {
			m.vacate(r.slot)
			*s = slot{id: r.id, serial: r.serial}
			m.index[r.id] = r.slot
			m.serial = max(m.serial, r.serial)
		}
		if r.only {
			m.forgetNames(r.slot)
		}
		m.addLoc(r.slot, loc{off: off, parent: r.parent, hash: hashName(r.name)})
	case recUnbind:
		m.removeLoc(r.slot, r.parent, r.hash)
	case recDrop:
		m.vacate(r.slot)
	}
	return nil
}

// gather finds the free slots after a load.
func (m *mapHandles) gather() {
	for i := range m.slots {
		if m.slots[i].serial == 0 {
			m.free = append(m.free, uint32(i))
		}
	}
}

// vacate empties a slot, in memory.
func (m *mapHandles) vacate(i uint32) {
	s := &m.slots[i]
	if s.serial != 0 && m.index[s.id] == i {
		delete(m.index, s.id)
	}
	m.forgetNames(i)
	*s = slot{}
}

func (m *mapHandles) forgetNames(i uint32) {
	if m.slots[i].first.off != 0 {
		m.names--
	}
	m.names -= len(m.more[i])
	delete(m.more, i)
	m.slots[i].first = loc{}
}

// addLoc notes a further place, or a newer record of one.
func (m *mapHandles) addLoc(i uint32, l loc) {
	m.removeLoc(i, l.parent, l.hash)
	s := &m.slots[i]
	if s.first.off == 0 {
		s.first = l
		m.names++
		return
	}
	more := m.more[i]
	if len(more) >= maxNames-1 {
		more = slices.Delete(more, 0, 1)
		m.names--
	}
	m.more[i] = append(more, l)
	m.names++
}

func (m *mapHandles) removeLoc(i, parent, hash uint32) {
	same := func(l loc) bool { return l.off != 0 && l.parent == parent && l.hash == hash }
	s := &m.slots[i]
	more := m.more[i]
	n := len(more)
	more = slices.DeleteFunc(more, same)
	m.names -= n - len(more)
	if same(s.first) {
		s.first = loc{}
		m.names--
		if len(more) > 0 {
			s.first = more[0]
			more = slices.Delete(more, 0, 1)
		}
	}
	if len(more) == 0 {
		delete(m.more, i)
	} else {
		m.more[i] = more
	}
}

// locs are all places of an object.
func (m *mapHandles) locs(i uint32) []loc {
	if m.slots[i].first.off == 0 {
		return nil
	}
	return append([]loc{m.slots[i].first}, m.more[i]...)
}

// at returns the place of that name, if it is known.
func (m *mapHandles) at(i, parent, hash uint32) (loc, bool) {
	if l := m.slots[i].first; l.off != 0 && l.parent == parent && l.hash == hash {
		return l, true
	}
	for _, l := range m.more[i] {
		if l.parent == parent && l.hash == hash {
			return l, true
		}
	}
	return loc{}, false
}

// ident is what tells st's object from others.
func (m *mapHandles) ident(st *stat) ident {
	id := st.ident()
	if m.byIno {
		id.btime = 0
	}
	return id
}

func (m *mapHandles) pack(i uint32) vfs.Handle {
	var b [mapHandleSize]byte
	b[0] = handleMap
	copy(b[1:], m.nonce[:])
	binary.BigEndian.PutUint32(b[9:], i)
	binary.BigEndian.PutUint64(b[13:], m.slots[i].serial)
	x, _ := vfs.MakeHandle(b[:]) // 21 bytes are never too many
	return x
}

// slotOf is the slot that x names.
func (m *mapHandles) slotOf(x vfs.Handle) (uint32, error) {
	b := x.Bytes()
	if len(b) != mapHandleSize || b[0] != handleMap {
		return 0, vfs.ErrBadHandle
	}
	i, serial := binary.BigEndian.Uint32(b[9:]), binary.BigEndian.Uint64(b[13:])
	if string(b[1:9]) != string(m.nonce[:]) || int64(i) >= int64(len(m.slots)) || serial == 0 || m.slots[i].serial != serial {
		return 0, vfs.ErrStale
	}
	return i, nil
}

func (m *mapHandles) root() (vfs.Handle, error) { return m.pack(rootSlot), nil }

func (m *mapHandles) bind(dir *desc, name []byte, _ int, st *stat) (vfs.Handle, mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, err := m.slotOf(dir.key.h)
	if err != nil {
		return vfs.Handle{}, 0, err
	}
	id := m.ident(st)
	i, known := m.index[id]
	if i == rootSlot && known {
		return m.pack(rootSlot), 0, nil
	}
	if known {
		if l, ok := m.at(i, parent, hashName(name)); ok {
			return m.pack(i), m.log.mark(l.off), nil
		}
	} else if i, err = m.alloc(id); err != nil {
		return vfs.Handle{}, 0, err
	}
	only := st.Nlink <= 1 || st.is(unix.S_IFDIR)
	off, err := m.place(i, parent, name, only)
	if err != nil {
		if !known {
			m.vacate(i)
			m.free = append(m.free, i)
		}
		return vfs.Handle{}, 0, err
	}
	return m.pack(i), m.log.mark(off), nil
}

// alloc takes a slot for a new object, in memory: the bind that follows tells
// the file.
func (m *mapHandles) alloc(id ident) (i uint32, err error) {
	switch {
	case len(m.free) > 0:
		i = m.free[len(m.free)-1]
		m.free = m.free[:len(m.free)-1]
	case len(m.slots) < MaxMapEntries:
		i = uint32(len(m.slots))
		m.slots = append(m.slots, slot{})
	default:
		return 0, fmt.Errorf("localfs: the map of handles is full, with %d objects: %w", MaxMapEntries, vfs.ErrServerFault)
	}
	m.serial++
	m.slots[i] = slot{id: id, serial: m.serial}
	m.index[id] = i
	return i, nil
}

// place notes, in the file and in memory, that i is called name in parent.
func (m *mapHandles) place(i, parent uint32, name []byte, only bool) (int64, error) {
	m.tidy()
	s := &m.slots[i]
	off, err := m.log.append(&record{typ: recBind, slot: i, serial: s.serial, id: s.id, parent: parent, only: only, name: name})
	if err != nil {
		return 0, err
	}
	m.records++
	if only {
		m.forgetNames(i)
	}
	m.addLoc(i, loc{off: off, parent: parent, hash: hashName(name)})
	return off, nil
}

func (m *mapHandles) find(_ *desc, _ string, _ int, st *stat) (vfs.Handle, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[m.ident(st)]
	if !ok {
		return vfs.Handle{}, false
	}
	return m.pack(i), true
}

func (m *mapHandles) expect(dir *desc, name string, x vfs.Handle) (mark, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, err := m.slotOf(dir.key.h)
	if err != nil {
		return 0, false, err
	}
	i, err := m.slotOf(x)
	if err != nil {
		return 0, false, err
	}
	if l, ok := m.at(i, parent, hashName(name)); ok {
		return m.log.mark(l.off), false, nil
	}
	off, err := m.place(i, parent, []byte(name), false)
	if err != nil {
		return 0, false, err
	}
	return m.log.mark(off), true, nil
}

func (m *mapHandles) unbind(dir *desc, name string, x vfs.Handle, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.slotOf(x)
	if err != nil || i == rootSlot {
		return
	}
	if gone {
		m.drop(i)
		return
	}
	parent, err := m.slotOf(dir.key.h)
	if err != nil {
		return
	}
	hash := hashName(name)
	m.note(&record{typ: recUnbind, slot: i, parent: parent, hash: hash})
	m.removeLoc(i, parent, hash)
}

// drop ends the life of a handle.
func (m *mapHandles) drop(i uint32) {
	m.note(&record{typ: recDrop, slot: i})
	m.vacate(i)
	m.free = append(m.free, i)
}

// note appends what may as well be lost: without it, an object is looked for
// where it no longer is, and found to be another or none.
func (m *mapHandles) note(r *record) {
	if _, err := m.log.append(r); err != nil {
		m.h.o.Report(err)
		return
	}
	m.records++
}

func (m *mapHandles) settle(at mark) error { return m.log.settle(at) }

func (m *mapHandles) close() error {
	err := m.log.close()
	if m.dirfd >= 0 {
		err = closing(m.dirfd, err) // and unlocked
		m.dirfd = -1
	}
	return err
}

// tidy writes the file anew when more of it is dead than alive.
func (m *mapHandles) tidy() {
	if m.records <= max(2*m.names+compactSlack, m.patient) {
		return
	}
	if err := m.compact(); err != nil {
		m.h.o.Report(fmt.Errorf("%w; the old file goes on growing", err))
		m.patient = m.records + m.names + compactSlack
	}
}

// compact writes a file of what is alive and puts it in the old one's place.
// All calls that need the map wait meanwhile: about a second for each million
// names.
func (m *mapHandles) compact() error {
	first := make([]int64, len(m.slots))
	more := make(map[uint32][]loc, len(m.more))
	old := m.log.reader()
	err := m.log.replace(func(w *mapWriter) error {
		w.buf = (&header{slots: uint32(len(m.slots)), nonce: m.nonce, root: m.slots[rootSlot].id, serial: m.serial}).append(w.buf)
		for i := range m.slots {
			for _, l := range m.locs(uint32(i)) {
				off, err := m.copyName(w, old, uint32(i), l)
				if err != nil {
					return err
				}
				if first[i] == 0 {
					first[i] = off
					continue
				}
				l.off = off
				more[uint32(i)] = append(more[uint32(i)], l)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, off := range first {
		m.slots[i].first.off = off
	}
	m.more, m.records, m.patient = more, m.names, 0
	return nil
}

// copyName writes the bind of one place of slot i.
func (m *mapHandles) copyName(w *mapWriter, old nameReader, i uint32, l loc) (int64, error) {
	name, err := old.nameLocked(l.off)
	if err != nil {
		return 0, err
	}
	s := &m.slots[i]
	return w.record(&record{typ: recBind, slot: i, serial: s.serial, id: s.id, parent: l.parent, name: []byte(name)})
}
