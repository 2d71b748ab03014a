//go:build linux

package handlemap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// mapHandles numbers the objects and remembers what they are called: for
// containers and processes without privilege, which the kernel gives no handles.
// A handle is
//
//	byte     version: handleMap
//	[8]byte  the map's nonce
//	uint32   slot, big endian
//	uint64   serial: slots are used again, serials are not
//
// It survives restarts, and renames that are made through this FS. What was
// renamed behind its back is searched for where it was; if it is not there under
// any name, it is stale, and remains so. An inode number that is used again is told
// from the old one by what the file system says of its generations (map_ident.go).
// What local programs have removed is found out now and then (map_sweep.go).
type Map struct {
	o     Options
	dirfd int // Options.StateDir, locked; -1: volatile
	by    Numberer
	log   *log

	// moving is held for reading while a rename is under way, and for writing by
	// a call that has not found an object and must know whether it is gone.
	moving sync.RWMutex

	mu      sync.Mutex
	nonce   [8]byte
	serial  uint64
	slots   []slot
	free    []uint32
	index   map[linux.Ident]uint32
	more    map[uint32][]loc // further names of objects that have several
	names   int              // known names
	records int              // in the file, dead or alive
	patient int              // records at which a compaction is worth a try
	most    int              // objects: MaxMapEntries
	sweep   sweep
}

// mapSetup is what a map is made of.
type Options struct {
	// StateDir is the directory of the map's file, which one process at a time uses. It
	// must not lie in the tree. "" is a map in memory, if Volatile.
	StateDir string
	Volatile bool
	// Disk is what changes the file.
	Disk Disk
	// Rand fills its argument with randomness; Report is told what no caller is.
	Rand   func([]byte)
	Report func(error)

	Path      string // of the tree, for messages
	Root      int    // its top directory, open as O_PATH
	RootMount uint64 // the mount that Root is in
	// Mount tells objects of another mount apart, and is the key of that mount. ok is false if it
	// is not part of the tree.
	Mount func(id uint64) (by *Numberer, key uint64, ok bool)
	// FDs has the descriptors of directories on the way.
	FDs *fdcache.Cache
	// InTree is vfs.ErrStale for a directory that lies outside of the tree now. Beneath
	// says the same of a descriptor.
	InTree  func(d *fdcache.Desc) error
	Beneath func(fd int) (bool, error)

	// NoHandles is for tests: objects are known by their birth.
	NoHandles bool
}

// mapDisk are the system calls that change the map's file: see localfs.Sys.
type Disk interface {
	Openat(dirfd int, name string, flags int, mode uint32) (fd int, err error)
	Unlinkat(dirfd int, name string, flags int) error
	Renameat(fromfd int, from string, tofd int, to string) error
	Pwrite(fd int, p []byte, off int64) (int, error)
	Ftruncate(fd int, size int64) error
	Fsync(fd int) error
	Fdatasync(fd int) error
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

func hashName[T string | []byte](name T) uint32 { return crc32.Checksum([]byte(name), castagnoli) }

// newMapHandles opens the map in the state directory, or begins one.
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

// errOtherMap says that a map is of no use for the directory that is served.
var errOtherMap = errors.New("the old one belongs to another directory")

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
	m.by = NewNumberer(m.o.Root, &st, int64(sfs.Type), m.o.NoHandles)
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
			m.gather()
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

func (m *Map) pack(i uint32) vfs.Handle {
	var b [handleSize]byte
	b[0] = handleMap
	copy(b[1:], m.nonce[:])
	binary.BigEndian.PutUint32(b[9:], i)
	binary.BigEndian.PutUint64(b[13:], m.slots[i].serial)
	x, _ := vfs.MakeHandle(b[:]) // 21 bytes are never too many
	return x
}

// slotOf is the slot that x names.
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

// size is how many objects the map knows, in how many slots, and how many records its
// file has, dead or alive.
func (m *Map) Size() (objects, slots, records int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.index), len(m.slots), m.records
}

// setMost is for tests: a map of so many objects is full.
func (m *Map) SetMost(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = n
}

// changing reports whether an object may come to look like another when it is written to:
// see numberer.copiesUp.
func (m *Map) CopiesUp() bool { return m.by.copiesUp }

func (m *Map) Root() (vfs.Handle, error) { return m.pack(rootSlot), nil }

func (m *Map) Bind(dir *fdcache.Desc, name []byte, fd int, st *linux.Stat) (vfs.Handle, Mark, error) {
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
			return m.pack(i), m.log.mark(l.off), nil
		}
	} else if i, err = m.alloc(id); err != nil {
		return vfs.Handle{}, 0, err
	}
	// Not the only name, even if there is one link: what was looked up may have
	// been renamed since, and its new name is noted already.
	off, err := m.place(i, parent, name, false)
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

func (m *Map) Expect(dir *fdcache.Desc, name string, x vfs.Handle) (Mark, bool, error) {
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
		return m.log.mark(l.off), false, nil
	}
	off, err := m.place(i, parent, []byte(name), false)
	if err != nil {
		return 0, false, err
	}
	return m.log.mark(off), true, nil
}

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
	m.vacate(i)
	m.free = append(m.free, i)
}

// note appends what may as well be lost: without it, an object is looked for
// where it no longer is, and found to be another or none.
func (m *Map) note(r *record) {
	if _, err := m.log.append(r); err != nil {
		m.o.Report(err)
		return
	}
	m.records++
}

func (m *Map) WhileMoving(f func() error) error {
	m.moving.RLock()
	defer m.moving.RUnlock()
	return f()
}

func (m *Map) Settle(at Mark) error { return m.log.settle(at) }

// settled reports whether settle(at) need not wait.
func (m *Map) Settled(at Mark) bool { return m.log.settled(at) }

func (m *Map) Close() error {
	err := m.log.close()
	if m.dirfd >= 0 {
		err = linux.Close(m.dirfd, err) // and unlocked
		m.dirfd = -1
	}
	return err
}
