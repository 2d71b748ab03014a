//go:build linux

package handlemap

import "fmt"

// compactIfDue writes the file anew when more of it is dead than alive.
func (m *Map) compactIfDue() {
	if m.records <= max(2*m.names+CompactSlack, m.compactAt) {
		return
	}
	if err := m.compact(); err != nil {
		m.o.Report(fmt.Errorf("%w; the old file goes on growing", err))
		m.compactAt = m.records + m.names + CompactSlack
	}
}

// compact writes a file of what is alive and puts it in the old one's place.
// All calls that need the map wait meanwhile: about a second for each million
// names.
func (m *Map) compact() error {
	first := make([]int64, len(m.slots))
	more := make(map[uint32][]loc, len(m.more))
	old := m.log.reader()
	err := m.log.replace(func(w *writer) error {
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
	m.more, m.records, m.compactAt = more, m.names, 0
	return nil
}

// copyName writes the bind of one place of slot i.
func (m *Map) copyName(w *writer, old nameReader, i uint32, l loc) (int64, error) {
	name, err := old.nameLocked(l.off)
	if err != nil {
		return 0, err
	}
	s := &m.slots[i]
	return w.record(&record{typ: recBind, slot: i, serial: s.serial, id: s.id, parent: l.parent, name: []byte(name)})
}
