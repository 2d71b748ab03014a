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

// maxSteps bounds how many places are tried to find one object, all directories
// above it included. A map in which directories seem to contain each other, as
// renames behind our back can make it seem, ends there, with ErrStale.
const maxSteps = 4 * MaxDepth

// maxMisses is how often an object that is not where it should be is looked for
// again because something has become known of it meanwhile. Beyond, this call
// gets ErrStale, and the next may have more luck.
const maxMisses = 8

// search is one search for an object. At first it concludes nothing from what it does not
// find: a rename under way may have taken the object from a place that was passed to one
// that is still to come. Only a final search, during which there are no renames, gives an
// object up.
type search struct {
	m     *Map
	final bool
	steps int
	depth int
}

// place is a loc with its name.
type place struct {
	loc
	name string
}

// Open returns an O_PATH descriptor of what x names, which belongs to the caller, and fills
// st. It looks where the object is or was called so. It is vfs.ErrStale if the object is
// gone. A directory is not checked to lie in the tree.
func (m *Map) Open(x vfs.Handle, st *linux.Stat) (int, error) {
	s := search{m: m}
	fd, err := s.open(x, st)
	if !errors.Is(err, vfs.ErrNoEnt) {
		return fd, err
	}
	m.moving.Lock()
	defer m.moving.Unlock()
	s = search{m: m, final: true}
	return s.open(x, st)
}

// open opens what x names, where it is or was called so. vfs.ErrNoEnt says that it is not
// there, which may mean nothing.
func (s *search) open(x vfs.Handle, st *linux.Stat) (int, error) {
	for range maxMisses {
		id, places, err := s.m.places(x)
		if err != nil {
			return -1, err
		}
		if places == nil {
			return s.openRoot(st)
		}
		fd, err := s.try(id, places, st)
		if errors.Is(err, vfs.ErrNoEnt) && s.final {
			fd, err = s.rescan(x, id, places, st)
		}
		if !errors.Is(err, vfs.ErrNoEnt) || !s.final {
			return fd, err
		}
		if s.m.giveUp(x, places) {
			break
		}
	}
	return -1, vfs.ErrStale
}

// places returns where x is to be looked for; nil for the root.
func (m *Map) places(x vfs.Handle) (linux.Ident, []place, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.slotOf(x)
	if err != nil {
		return linux.Ident{}, nil, err
	}
	if i == rootSlot {
		return m.slots[i].id, nil, nil
	}
	old := m.log.reader()
	ps := []place{}
	for _, l := range m.locs(i) {
		name, err := old.name(l.off)
		if err != nil {
			return linux.Ident{}, nil, err
		}
		ps = append(ps, place{l, name})
	}
	return m.slots[i].id, ps, nil
}

// handleAt returns the handle of a slot, if it is in use.
func (m *Map) handleAt(i uint32) (vfs.Handle, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if int64(i) >= int64(len(m.slots)) || m.slots[i].serial == 0 {
		return vfs.Handle{}, false
	}
	return m.pack(i), true
}

// giveUp drops x, which was nowhere to be found, and reports whether it has:
// not so if something has become known of it since.
func (m *Map) giveUp(x vfs.Handle, tried []place) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.slotOf(x)
	if err != nil {
		return true
	}
	if !slices.EqualFunc(m.locs(i), tried, func(l loc, p place) bool { return l == p.loc }) {
		return false
	}
	m.drop(i)
	return true
}

func (s *search) openRoot(st *linux.Stat) (int, error) {
	fd, err := linux.OpenPath(s.m.o.Root, ".", unix.O_DIRECTORY)
	if err != nil {
		return -1, linux.Fail("open", err)
	}
	if err := st.Of(fd); err != nil {
		return -1, linux.Close(fd, linux.Fail("statx", err))
	}
	return fd, nil
}

// try opens the first of the places where the object is. ErrNoEnt: none.
func (s *search) try(id linux.Ident, places []place, st *linux.Stat) (int, error) {
	for _, p := range places {
		dir, err := s.dir(p.parent)
		if linux.IsGone(err) {
			continue
		}
		if err != nil {
			return -1, err
		}
		fd, err := s.openAs(dir, p.name, id, st)
		s.m.o.FDs.Unpin(dir)
		if err == nil || !linux.IsGone(err) {
			return fd, err
		}
	}
	return -1, vfs.ErrNoEnt
}

// dir returns the pinned descriptor of the directory in a slot.
func (s *search) dir(i uint32) (*fdcache.Desc, error) {
	x, ok := s.m.handleAt(i)
	if !ok {
		return nil, vfs.ErrStale
	}
	fds := s.m.o.FDs
	d := fds.Get(x, fdcache.Path)
	if d == nil {
		if s.steps++; s.steps > maxSteps || s.depth >= MaxDepth {
			return nil, vfs.ErrStale
		}
		var st linux.Stat
		s.depth++
		fd, err := s.open(x, &st)
		s.depth--
		if err != nil {
			return nil, err
		}
		if d, err = fds.Put(x, fdcache.Path, fd, st.Mode&unix.S_IFMT); err != nil {
			return nil, err
		}
	}
	if err := s.m.o.InTree(d); err != nil {
		fds.Unpin(d)
		return nil, err
	}
	if d.Kind != unix.S_IFDIR {
		fds.Unpin(d)
		return nil, vfs.ErrNotDir
	}
	return d, nil
}

// openAs opens name in dir if it is the object id, else ErrNoEnt.
func (s *search) openAs(dir *fdcache.Desc, name string, id linux.Ident, st *linux.Stat) (int, error) {
	fd, err := linux.OpenPath(dir.FD, name, 0)
	if err != nil {
		return -1, linux.Fail("open", err)
	}
	if err := st.Of(fd); err != nil {
		return -1, linux.Close(fd, linux.Fail("statx", err))
	}
	now, err := s.m.ident(nil, nil, fd, st)
	if err == nil && now != id {
		err = vfs.ErrNoEnt
	}
	if err != nil {
		return -1, linux.Close(fd, err)
	}
	return fd, nil
}

// rescan looks through the directories where the object was for a new name of
// it. ErrNoEnt: it has none there, or nothing but its number would tell it from others.
func (s *search) rescan(x vfs.Handle, id linux.Ident, places []place, st *linux.Stat) (int, error) {
	if id.Gen == 0 {
		return -1, vfs.ErrNoEnt
	}
	seen := make([]uint32, 0, len(places))
	for _, p := range places {
		if slices.Contains(seen, p.parent) {
			continue
		}
		seen = append(seen, p.parent)
		dir, err := s.dir(p.parent)
		if linux.IsGone(err) {
			continue
		}
		if err != nil {
			return -1, err
		}
		fd, name, err := s.scan(dir, id, st)
		if err == nil {
			err = s.m.moved(x, dir, name, st)
			if err != nil {
				err = linux.Close(fd, err)
			}
		}
		s.m.o.FDs.Unpin(dir)
		if err == nil || !linux.IsGone(err) {
			return fd, err
		}
	}
	return -1, vfs.ErrNoEnt
}

// scan reads dir until it meets the object id.
func (s *search) scan(dir *fdcache.Desc, id linux.Ident, st *linux.Stat) (fd int, name string, err error) {
	fd = -1
	err = s.each(dir, func(d *linux.Dirent) (done bool, err error) {
		if d.Ino != id.Ino {
			return false, nil
		}
		fd, err = s.openAs(dir, string(d.Name), id, st)
		if linux.IsGone(err) {
			return false, nil
		}
		name = string(d.Name)
		return true, err
	})
	if err == nil && fd < 0 {
		err = vfs.ErrNoEnt
	}
	return fd, name, err
}

// each has f look at the entries of dir until it is done. ErrStale: there are too many.
func (s *search) each(dir *fdcache.Desc, f func(*linux.Dirent) (done bool, err error)) error {
	list, err := linux.Reopen(dir.FD, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return linux.Fail("open", err)
	}
	defer func() { _ = unix.Close(list) }() // it was read only: nothing can be lost
	l := linux.Dir{FD: list, Buf: make([]byte, scanBuffer)}
	for range maxRescan {
		if l.Empty() {
			if err := l.Read(); err != nil || l.Empty() {
				return err
			}
		}
		d, err := l.Next()
		if err != nil {
			return err
		}
		if string(d.Name) == "." || string(d.Name) == ".." {
			continue
		}
		if done, err := f(&d); done || err != nil {
			return err
		}
	}
	return vfs.ErrStale
}

// moved notes that x was found as name in dir.
func (m *Map) moved(x vfs.Handle, dir *fdcache.Desc, name string, st *linux.Stat) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := m.slotOf(x)
	if err != nil {
		return err
	}
	parent, err := m.slotOf(dir.H)
	if err != nil {
		return err
	}
	_, err = m.place(i, parent, []byte(name), st.Nlink <= 1 || st.Is(unix.S_IFDIR))
	return err
}
