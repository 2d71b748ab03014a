//go:build linux

package mounts

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxMounts bounds the mount points below the root that are crossed. The
	// others stay hidden, and are reported.
	maxMounts = 512

	// maxMountInfo bounds the kernel's table of mounts, in bytes: ten thousand
	// of them. What a longer one says beyond is not read.
	maxTable = 2 << 20

	// readSize is how much of it is read at once, in bytes.
	readSize = 32 << 10

	mountInfo = "/proc/self/mountinfo"
)

// Table are the file systems mounted below the root of a tree that are part of it. It
// follows the kernel's table: a call that meets a mount asks first whether that has
// changed, which is one poll(2). A nil Table has no mounts.
//
// The kernel numbers mounts as they come, and numbers come again. In handles and attributes
// a mount has a key, made of its file system's id and the inode of its root. It survives a
// restart as well as those do. The same directory mounted in two places below the root has
// one key, and one "..".
//
// Each mount is held by a descriptor. While it is served it can only be unmounted with
// umount -l; what is below it is then stale.
type Table struct {
	o    Options
	info int // mountInfo

	mu    sync.RWMutex // held for reading while a mount's fd is used
	known bool         // false: the table has changed, or was never read
	byID  map[uint64]*mount
	byKey map[uint64]*mount
}

type mount struct {
	id, key uint64
	fd      int // of its root
	by      handlemap.Identifier
	seal    Double
}

// Options are what a Table has to know of the tree.
type Options struct {
	Path      string // of the tree, for messages
	Root      int    // its top directory, open as O_PATH
	RootMount uint64 // the mount that Root is in
	// NeedHandles hides what has no handles of the kernel.
	NeedHandles bool
	// NoHandles is for tests: objects are known by their birth.
	NoHandles bool
	// Opened counts descriptors: 1 when one is opened, -1 when it is closed.
	Opened func(n int)
	// Report is told what is hidden.
	Report func(error)
}

// Open reads the kernel's table.
func Open(o Options) (*Table, error) {
	fd, err := unix.Open(mountInfo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mountInfo, linux.Fail("open", err))
	}
	m := &Table{o: o, info: fd}
	m.follow()
	return m, nil
}

// Close lets go of all mounts.
func (m *Table) Close() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replace(nil)
	return linux.Close(m.info, nil)
}

// Count is how many mounts are held.
func (m *Table) Count() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.byID)
}

// Key is the key of the mount that the kernel calls id; ok is false of what is not part of
// the tree.
func (m *Table) Key(id uint64) (key uint64, ok bool) {
	if m == nil {
		return 0, false
	}
	m.follow()
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.byID[id]; p != nil {
		return p.key, true
	}
	return 0, false
}

// Identifier tells objects of the mount id apart, and is the key of that mount. ok is false
// if mounts are not crossed.
func (m *Table) Identifier(id uint64) (by *handlemap.Identifier, key uint64, ok bool) {
	if m == nil {
		return nil, 0, false
	}
	m.follow()
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.byID[id]; p != nil {
		return &p.by, p.key, true
	}
	return &handlemap.Identifier{}, 0, true
}

// Open opens r, of the mount of that key, as O_PATH.
func (m *Table) Open(key uint64, r *linux.RawHandle) (int, error) {
	m.follow()
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.byKey[key]
	if p == nil {
		return -1, unix.ESTALE
	}
	return r.Open(p.fd, unix.O_PATH)
}

// follow reads the table again if the kernel's has changed.
func (m *Table) follow() {
	m.mu.RLock()
	known := m.known && !m.changed()
	m.mu.RUnlock()
	if known {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = false
	m.changed() // up to here; what comes after this is for the next
	if err := m.read(); err != nil {
		m.o.Report(fmt.Errorf("localfs: %s: what is mounted below is not known: %w", m.o.Path, err))
		return
	}
	m.known = true
}

// changed reports whether the kernel's table is another than at the last call.
func (m *Table) changed() bool {
	p := [1]unix.PollFd{{Fd: int32(m.info), Events: unix.POLLPRI}}
	n, err := unix.Poll(p[:], 0)
	return err != nil || n > 0
}

func (m *Table) read() error {
	table, err := m.table()
	if err != nil {
		return err
	}
	var path [unix.PathMax]byte
	n, err := unix.Readlink(linux.ProcPath(m.o.Root), path[:])
	if err != nil {
		return linux.Fail("readlink", err)
	}
	var all []*mount
	for line := range bytes.Lines(table) {
		id, point, ok := parseMount(line)
		if !ok || id == m.o.RootMount || !below(point, path[:n]) {
			continue
		}
		if len(all) >= maxMounts {
			m.o.Report(fmt.Errorf("localfs: %s: more than %d mounts; the others are hidden: %w", m.o.Path, maxMounts, vfs.ErrXDev))
			break
		}
		if p, err := m.openMount(id, string(point)); err == nil {
			all = append(all, p)
		} else if !errors.Is(err, vfs.ErrXDev) {
			m.o.Report(fmt.Errorf("localfs: what is mounted on %q is hidden: %w", point, err))
		}
	}
	m.replace(all)
	return nil
}

func (m *Table) table() ([]byte, error) {
	var b []byte
	for len(b) < maxTable {
		b = append(b, make([]byte, readSize)...)
		at := len(b) - readSize
		n, err := unix.Pread(m.info, b[at:], int64(at))
		if err != nil {
			return nil, linux.Fail("pread", err)
		}
		b = b[:at+n]
		if n == 0 {
			break
		}
	}
	return b, nil
}

// replace puts other mounts into the place of those that are known.
func (m *Table) replace(all []*mount) {
	for _, p := range m.byID {
		p.seal.Close(m.o.Opened)
		_ = unix.Close(p.fd) // it was read only: nothing can be lost
		m.o.Opened(-1)
	}
	m.byID, m.byKey = make(map[uint64]*mount, len(all)), make(map[uint64]*mount, len(all))
	for _, p := range all {
		m.o.Opened(1)
		m.byID[p.id] = p
		if m.byKey[p.key] == nil {
			m.byKey[p.key] = p
		}
	}
}

// openMount opens the mount id, which is said to be at point. ErrXDev: it is not,
// because another one covers it.
func (m *Table) openMount(id uint64, point string) (*mount, error) {
	ref, err := unix.Open(point, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, linux.Fail("open", err)
	}
	p, err := m.mountOf(id, ref)
	if err := linux.Close(ref, err); err != nil {
		return nil, err
	}
	return p, nil
}

// mountOf makes a mount of its root.
func (m *Table) mountOf(id uint64, ref int) (*mount, error) {
	var st linux.Stat
	if err := st.Of(ref); err != nil {
		return nil, linux.Fail("statx", err)
	}
	if st.Mnt_id != id {
		return nil, vfs.ErrXDev
	}
	if !st.Is(unix.S_IFDIR) && !st.Is(unix.S_IFREG) {
		return nil, vfs.ErrNotSupp // to open a device would be to use it
	}
	if m.o.NeedHandles {
		var r linux.RawHandle
		if _, err := r.NameToHandle(ref, &linux.EmptyName[0], unix.AT_EMPTY_PATH); err != nil {
			return nil, linux.Fail("name_to_handle_at", err)
		}
	}
	var sfs unix.Statfs_t
	if err := unix.Fstatfs(ref, &sfs); err != nil {
		return nil, linux.Fail("fstatfs", err)
	}
	fd, err := linux.Reopen(ref, unix.O_RDONLY)
	if err != nil {
		return nil, linux.Fail("open", err)
	}
	by := handlemap.NewIdentifier(ref, &st, int64(sfs.Type), m.o.NoHandles)
	return &mount{id: id, key: keyOf(&sfs, &st), fd: fd, by: by}, nil
}

// keyOf is never 0, which is the root's key.
func keyOf(sfs *unix.Statfs_t, st *linux.Stat) uint64 {
	fs := uint64(uint32(sfs.Fsid.Val[0])) | uint64(uint32(sfs.Fsid.Val[1]))<<32
	if fs == 0 {
		fs = st.Dev() // of file systems without an id
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], fs)
	binary.LittleEndian.PutUint64(b[8:], st.Ino)
	sum := fnv.New64a()
	_, _ = sum.Write(b[:]) // a hash.Hash never fails to write
	return max(sum.Sum64(), 1)
}

// parseMount reads the number and the mount point from a line of mountInfo
// (proc_pid_mountinfo(5)): its first and its fifth field.
func parseMount(line []byte) (id uint64, point []byte, ok bool) {
	f := bytes.Fields(line)
	if len(f) < 6 {
		return 0, nil, false
	}
	id, err := strconv.ParseUint(string(f[0]), 10, 64)
	if err != nil {
		return 0, nil, false
	}
	return id, unescape(f[4]), true
}

func unescape(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(string(s[i+1:i+4]), 8, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, s[i])
	}
	return out
}

// below reports whether the path p lies below dir.
func below(p, dir []byte) bool {
	rest, ok := bytes.CutPrefix(p, bytes.TrimSuffix(dir, []byte("/")))
	return ok && len(rest) > 1 && rest[0] == '/'
}

// Sealed runs open with the root of the double of the mount id, and the root of that mount,
// which stay open meanwhile. It is vfs.ErrStale if that mount is no part of the tree any
// more, and vfs.ErrNotSupp for a nil Table.
func (m *Table) Sealed(id uint64, open func(double, mount int) (int, error)) (int, error) {
	if m == nil {
		return -1, vfs.ErrNotSupp
	}
	m.follow()
	m.mu.RLock()
	defer m.mu.RUnlock()
	p := m.byID[id]
	if p == nil {
		return -1, vfs.ErrStale
	}
	in, err := p.seal.Root(p.fd, m.o.Opened, m.report)
	if err != nil {
		return -1, err
	}
	return open(in, p.fd)
}

// report names the tree.
func (m *Table) report(err error) { m.o.Report(fmt.Errorf("localfs: %s: %w", m.o.Path, err)) }
