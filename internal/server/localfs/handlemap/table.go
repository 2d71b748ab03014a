//go:build linux

package handlemap

import (
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

// apply repeats what a record tells.
func (m *Map) apply(r *record, off int64) error {
	m.records++
	switch {
	case r.typ == recSynced:
		return nil
	case r.slot == rootSlot || int(r.slot) > len(m.slots) || r.slot >= MaxEntries:
		return fmt.Errorf("slot %d", r.slot)
	case int(r.slot) == len(m.slots):
		m.slots = append(m.slots, slot{})
	}
	switch s := &m.slots[r.slot]; r.typ {
	case recBind:
		if s.serial != r.serial {
			m.empty(r.slot)
			*s = slot{id: r.id, serial: r.serial}
			m.index[r.id] = r.slot
			m.serial = max(m.serial, r.serial)
		} else if s.id != r.id {
			m.renumber(r.slot, r.id)
		}
		if r.only {
			m.forgetNames(r.slot)
		}
		m.addLoc(r.slot, loc{off: off, parent: r.parent, hash: hashName(r.name)})
	case recUnbind:
		m.removeLoc(r.slot, r.parent, r.hash)
	case recDrop:
		m.empty(r.slot)
	}
	return nil
}

// findFree finds the free slots after a load.
func (m *Map) findFree() {
	for i := range m.slots {
		if m.slots[i].serial == 0 {
			m.free = append(m.free, uint32(i))
		}
	}
}

func (m *Map) empty(i uint32) {
	s := &m.slots[i]
	if s.serial != 0 && m.index[s.id] == i {
		delete(m.index, s.id)
	}
	m.forgetNames(i)
	*s = slot{}
}

func (m *Map) forgetNames(i uint32) {
	if m.slots[i].first.off != 0 {
		m.names--
	}
	m.names -= len(m.more[i])
	delete(m.more, i)
	m.slots[i].first = loc{}
}

// addLoc notes a further place, or a newer record of one.
func (m *Map) addLoc(i uint32, l loc) {
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

func (m *Map) removeLoc(i, parent, hash uint32) {
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

func (m *Map) locs(i uint32) []loc {
	if m.slots[i].first.off == 0 {
		return nil
	}
	return append([]loc{m.slots[i].first}, m.more[i]...)
}

func (m *Map) at(i, parent, hash uint32) (loc, bool) {
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

// renumber gives the slot i another ident. m.mu is held.
func (m *Map) renumber(i uint32, id linux.Ident) {
	s := &m.slots[i]
	if m.index[s.id] == i {
		delete(m.index, s.id)
	}
	s.id = id
	m.index[id] = i
}
