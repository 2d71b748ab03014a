//go:build linux

package handlemap

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// ident is the Ident of what st describes: of fd or, if that is -1, of what is called name
// in dir. Inode numbers are those of one file system, so on other mounts than the root's
// the mount's key goes in as well.
func (m *Map) ident(dir *fdcache.Desc, name []byte, fd int, st *linux.Stat) (linux.Ident, error) {
	by, key := &m.by, uint64(0)
	if st.Mnt_id != m.o.RootMount {
		if other, k, ok := m.o.Mount(st.Mnt_id); ok {
			by, key = other, k
		}
	}
	at, flags := &linux.EmptyName[0], unix.AT_EMPTY_PATH
	if fd < 0 && by.how >= byHandle {
		fd, at, flags = dir.FD, linux.CName(name), 0
	}
	id, err := by.Ident(fd, at, flags, st)
	id.Gen ^= int64(key)
	return id, err
}

// Touched notes what o looks like now, if it has been copied up. A crash before WaitStable
// leaves a handle that may be stale.
func (m *Map) Touched(o *fdcache.Desc) (LSN, error) {
	var st linux.Stat
	if err := st.Of(o.FD); err != nil {
		return 0, linux.Fail("statx", err)
	}
	id, err := m.ident(nil, nil, o.FD, &st)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i, stale := m.slotOf(o.H)
	if stale != nil || i == rootSlot || m.slots[i].id == id {
		return 0, nil
	}
	m.renumber(i, id)
	l := m.slots[i].first
	if l.off == 0 {
		return 0, nil
	}
	name, err := m.log.reader().name(l.off)
	if err != nil {
		return 0, err
	}
	off, err := m.place(i, l.parent, []byte(name), false)
	return m.log.lsn(off), err
}

// Lost ends the life of a handle whose object is gone for good: it has no name left, and
// can get none.
func (m *Map) Lost(x vfs.Handle) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, err := m.slotOf(x); err == nil && i != rootSlot {
		m.drop(i)
	}
}

// Bind gives the object that st describes its handle. It is called name in dir; fd is the
// object, or -1. The handle must not leave the server before WaitStable has returned.
func (m *Map) Bind(dir *fdcache.Desc, name []byte, fd int, st *linux.Stat) (vfs.Handle, LSN, error) {
	id, err := m.ident(dir, name, fd, st)
	if err != nil {
		return vfs.Handle{}, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, err := m.slotOf(dir.H)
	if err != nil {
		return vfs.Handle{}, 0, err
	}
	i, known := m.index[id]
	if i == rootSlot && known {
		return m.pack(rootSlot), 0, nil
	}
	if known {
		if l, ok := m.at(i, parent, hashName(name)); ok {
			return m.pack(i), m.log.lsn(l.off), nil
		}
	} else if i, err = m.alloc(id); err != nil {
		return vfs.Handle{}, 0, err
	}
	// Not the only name, even if there is one link: what was looked up may have
	// been renamed since, and its new name is noted already.
	off, err := m.place(i, parent, name, false)
	if err != nil {
		if !known {
			m.empty(i)
			m.free = append(m.free, i)
		}
		return vfs.Handle{}, 0, err
	}
	return m.pack(i), m.log.lsn(off), nil
}

// alloc takes a slot for a new object, in memory: the bind that follows is in the log.
func (m *Map) alloc(id linux.Ident) (i uint32, err error) {
	switch {
	case len(m.free) > 0:
		i = m.free[len(m.free)-1]
		m.free = m.free[:len(m.free)-1]
	case len(m.slots) < m.most:
		i = uint32(len(m.slots))
		m.slots = append(m.slots, slot{})
	default:
		return 0, m.overflow()
	}
	m.serial++
	m.slots[i] = slot{id: id, serial: m.serial}
	m.index[id] = i
	return i, nil
}

// place notes, in the file and in memory, that i is called name in parent.
func (m *Map) place(i, parent uint32, name []byte, only bool) (int64, error) {
	m.compactIfDue()
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

// Find is Bind for an object that nobody may ever ask for: without a handle yet it gets
// none, and ok is false.
func (m *Map) Find(dir *fdcache.Desc, name string, fd int, st *linux.Stat) (vfs.Handle, bool) {
	id, err := m.ident(dir, []byte(name), fd, st)
	if err != nil {
		return vfs.Handle{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.index[id]
	if !ok {
		return vfs.Handle{}, false
	}
	return m.pack(i), true
}

// Expect says that x is about to be called name in dir as well. After WaitStable, x is
// found there too, if the change survives a crash. fresh is false if x was thought to be
// called that already.
func (m *Map) Expect(dir *fdcache.Desc, name string, x vfs.Handle) (LSN, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, err := m.slotOf(dir.H)
	if err != nil {
		return 0, false, err
	}
	i, err := m.slotOf(x)
	if err != nil {
		return 0, false, err
	}
	if l, ok := m.at(i, parent, hashName(name)); ok {
		return m.log.lsn(l.off), false, nil
	}
	off, err := m.place(i, parent, []byte(name), false)
	if err != nil {
		return 0, false, err
	}
	return m.log.lsn(off), true, nil
}

// Unbind says that x is no longer called name in dir, and, if gone, that it has no other
// name either.
func (m *Map) Unbind(dir *fdcache.Desc, name string, x vfs.Handle, gone bool) {
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
	parent, err := m.slotOf(dir.H)
	if err != nil {
		return
	}
	hash := hashName(name)
	m.note(&record{typ: recUnbind, slot: i, parent: parent, hash: hash})
	m.removeLoc(i, parent, hash)
}

// drop ends the life of a handle.
func (m *Map) drop(i uint32) {
	m.note(&record{typ: recDrop, slot: i})
	m.empty(i)
	m.free = append(m.free, i)
}

// note appends a record that may be lost. Without it the map looks for an object where it
// no longer is, and finds another one or none.
func (m *Map) note(r *record) {
	if _, err := m.log.append(r); err != nil {
		m.o.Report(err)
		return
	}
	m.records++
}

// WhileMoving runs f, in which an object leaves a name for another one that was expected.
// No search gives it up meanwhile.
func (m *Map) WhileMoving(f func() error) error {
	m.moving.RLock()
	defer m.moving.RUnlock()
	return f()
}

// ErrFull says that an object gets no handle, because the map has MaxEntries.
var ErrFull = fmt.Errorf("localfs: the map of handles is full: %w", vfs.ErrServerFault)

// overflow is ErrFull. It is reported once for each sweep that it brings about.
func (m *Map) overflow() error {
	if !m.sweep.full && m.sweep.next == 0 && m.sweep.pause == 0 {
		m.o.Report(fmt.Errorf("%w: with %d objects; others cannot be opened until some of these are gone", ErrFull, m.most))
	}
	m.sweep.full = true
	return ErrFull
}
