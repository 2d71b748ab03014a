//go:build linux

package handlemap

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// New opens the map in the state directory, or begins one.
func New(o Options) (_ *Map, err error) {
	m := &Map{o: o, dirfd: -1, index: make(map[linux.Ident]uint32), more: make(map[uint32][]loc), most: MaxEntries, sweep: sweep{at: SweepSlack}}
	if err := m.openDir(); err != nil {
		return nil, err
	}
	m.log = newLog(o.Disk, m.dirfd)
	if err := m.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("map of handles in %q: %w", o.StateDir, err), m.Close())
	}
	return m, nil
}

// openDir opens and locks the state directory.
func (m *Map) openDir() (err error) {
	o := &m.o
	if o.StateDir == "" {
		if !o.Volatile {
			return fmt.Errorf("the kernel gives no handles here, and there is no state directory to keep a map of them in: %w", vfs.ErrInval)
		}
		return nil
	}
	fd, err := unix.Open(o.StateDir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("state directory %q: %w", o.StateDir, linux.Fail("open", err))
	}
	if in, err := o.Beneath(fd); err != nil || in {
		if err == nil {
			err = fmt.Errorf("state directory %q lies within the tree that is served: %w", o.StateDir, vfs.ErrInval)
		}
		return linux.Close(fd, err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return linux.Close(fd, fmt.Errorf("state directory %q is in use: %w", o.StateDir, linux.Fail("flock", err)))
	}
	m.dirfd = fd
	return nil
}

// load reads the map, or begins a new one: also if the one that is there is not of this
// directory. A directory that was made again (a tmpfs, a layer of a container) has
// none of the objects that the old handles named, so nothing is lost with them.
func (m *Map) load() error {
	var sfs unix.Statfs_t
	if err := unix.Fstatfs(m.o.Root, &sfs); err != nil {
		return linux.Fail("fstatfs", err)
	}
	var st linux.Stat
	if err := st.Of(m.o.Root); err != nil {
		return linux.Fail("statx", err)
	}
	m.by = NewIdentifier(m.o.Root, &st, int64(sfs.Type), m.o.NoHandles)
	root, err := m.ident(nil, nil, m.o.Root, &st)
	if err != nil {
		return err
	}
	if m.dirfd >= 0 {
		err := m.log.load(func(hd *header) error { return m.begin(hd, root) }, m.apply)
		switch {
		case isNoMap(err):
		case errors.Is(err, errOtherMap):
			m.o.Report(fmt.Errorf("localfs: %s: a new map of handles is begun; all handles that clients have are stale, and they have to mount again: %w", m.o.Path, err))
			m.log.discard()
		default:
			m.findFree()
			return err
		}
	}
	m.o.Rand(m.nonce[:])
	m.serial = rootSerial
	m.slots = []slot{{id: root, serial: rootSerial}}
	m.index[root] = rootSlot
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.compact()
}

// begin takes the header of a file that was there.
func (m *Map) begin(hd *header, root linux.Ident) error {
	if hd.root != root {
		return fmt.Errorf("%w, of inode %d", errOtherMap, hd.root.Ino)
	}
	m.nonce, m.serial = hd.nonce, hd.serial
	m.slots = make([]slot, max(hd.slots, 1))
	m.slots[rootSlot] = slot{id: root, serial: rootSerial}
	m.index[root] = rootSlot
	return nil
}
