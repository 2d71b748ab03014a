//go:build linux

package handlemap

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// What a map holds of objects that are gone. Local programs remove files, and the map is not told;
// so now and then the map is looked through, a part at each look of the sweeper.
const (
	// sweepSlack is by how many objects, or by which part of them, one in sweepShare, a
	// map has to have grown for that.
	SweepSlack = 4096
	sweepShare = 4
	// sweepBatch is how many objects are looked for at a time, or a part of all, one in
	// sweepParts: so it takes as many looks, some minutes.
	sweepBatch = 1024
	SweepParts = 256
	// sweepPause is after how many looks a full map is looked through again.
	sweepPause = 1800
	// sweepDrops is how many objects are given up while renames wait.
	sweepDrops = 64
)

// missing is an object that was not found where it should be.
type missing struct {
	x      vfs.Handle
	id     linux.Ident
	places []place
	found  bool // or not to be judged
}

// SweepDue reports whether a sweep is under way, or to come.
func (m *Map) SweepDue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sweep.next != 0 || m.sweep.full || len(m.index) >= m.sweep.at
}

// Sweep looks for the next objects of the map, and gives up those that are gone. It waits
// for the disk.
func (m *Map) Sweep() {
	var gone []missing
	for _, x := range m.nextBatch() {
		id, places, err := m.places(x)
		if err != nil || places == nil {
			continue
		}
		var st linux.Stat
		fd, err := (&search{m: m}).try(id, places, &st)
		if err == nil {
			_ = unix.Close(fd) // a mere reference
		} else if errors.Is(err, vfs.ErrNoEnt) {
			gone = append(gone, missing{x: x, id: id, places: places})
		}
	}
	m.searchAll(gone)
	for part := range slices.Chunk(gone, sweepDrops) {
		m.dropAll(part)
	}
}

// nextBatch takes the handles that are next, if a sweep is due.
func (m *Map) nextBatch() (batch []vfs.Handle) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.sweep
	if s.next == 0 {
		if s.pause > 0 {
			s.pause--
			return nil
		}
		if !s.full && len(m.index) < s.at {
			return nil
		}
		s.next = rootSlot + 1
	}
	for end := len(m.slots); int(s.next) < end && len(batch) < max(sweepBatch, end/SweepParts); s.next++ {
		if m.slots[s.next].serial != 0 {
			batch = append(batch, m.pack(s.next))
		}
	}
	if int(s.next) >= len(m.slots) {
		s.next, s.at = 0, len(m.index)+max(SweepSlack, len(m.index)/sweepShare)
		if s.full {
			s.full, s.pause = false, sweepPause
		}
	}
	return batch
}

// searchAll looks for other names of the objects in gone, in the directories where they
// were, each of which is read once.
func (m *Map) searchAll(gone []missing) {
	in := make(map[uint32][]*missing)
	for i := range gone {
		g := &gone[i]
		if g.id.Gen == 0 {
			continue // see rescan
		}
		for _, p := range g.places {
			if all := in[p.parent]; len(all) == 0 || all[len(all)-1] != g {
				in[p.parent] = append(all, g)
			}
		}
	}
	for parent, all := range in {
		s := search{m: m}
		dir, err := s.dir(parent)
		if linux.IsGone(err) {
			continue
		}
		if err == nil {
			err = s.searchIn(dir, all)
			m.o.FDs.Unpin(dir)
		}
		for _, g := range all {
			g.found = g.found || err != nil // not to be judged
		}
	}
}

// searchIn looks for all in dir, and notes the names of those that are found.
func (s *search) searchIn(dir *fdcache.Desc, all []*missing) error {
	byNumber := make(map[uint64][]*missing, len(all))
	for _, g := range all {
		byNumber[g.id.Ino] = append(byNumber[g.id.Ino], g)
	}
	return s.each(dir, func(d *linux.Dirent) (done bool, err error) {
		for _, g := range byNumber[d.Ino] {
			var st linux.Stat
			fd, err := s.openAs(dir, string(d.Name), g.id, &st)
			if linux.IsGone(err) {
				continue
			}
			if err == nil {
				g.found = true
				err = linux.Close(fd, s.m.moved(g.x, dir, string(d.Name), &st))
			}
			if err != nil {
				return false, err
			}
		}
		return false, nil
	})
}

// dropAll gives up those of gone that are still nowhere, while nothing is renamed.
func (m *Map) dropAll(gone []missing) {
	m.moving.Lock()
	defer m.moving.Unlock()
	for i := range gone {
		g := &gone[i]
		if g.found {
			continue
		}
		var st linux.Stat
		fd, err := (&search{m: m}).try(g.id, g.places, &st)
		if err == nil {
			_ = unix.Close(fd) // a mere reference
		} else if errors.Is(err, vfs.ErrNoEnt) && m.giveUp(g.x, g.places) {
			m.o.FDs.Forget(g.x)
		}
	}
}
