//go:build linux

package localfs

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
	maxMountInfo = 2 << 20

	mountInfo = "/proc/self/mountinfo"
)

// mounts are the file systems mounted below the root, where Options.CrossMounts
// makes them part of the tree. The table follows the kernel's: a call that meets a
// mount asks first whether that has changed, which is one poll(2).
//
// The kernel numbers mounts as they come, and numbers come again; in handles and
// attributes a mount has a key that is made of its file system's id and the inode
// of its root, and survives a restart as well as those do. The same directory
// mounted in two places below the root has one key, and one ".." .
//
// Each mount is held by a descriptor. While it is served it can only be unmounted
// with umount -l; what is below it is then stale.
type mounts struct {
	h    *host
	info int // mountInfo

	mu    sync.RWMutex // held for reading while a mount's fd is used
	known bool         // false: the table has changed, or was never read
	byID  map[uint64]*mount
	byKey map[uint64]*mount
}

type mount struct {
	id, key uint64
	fd      int // of its root
	by      handlemap.Numberer
	seal    seal
}

// openMounts reads the table, for a host that has its root and its handler.
func openMounts(h *host) (*mounts, error) {
	fd, err := unix.Open(mountInfo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mountInfo, linux.Fail("open", err))
	}
	m := &mounts{h: h, info: fd}
	m.follow()
	return m, nil
}

func (m *mounts) close() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replace(nil)
	return linux.Close(m.info, nil)
}

// mountKey is the key of the mount that the kernel calls id: 0 is the root's own; ok
// is false of what is not to be served.
func (h *host) mountKey(id uint64) (key uint64, ok bool) {
	switch {
	case id == h.rootMount:
		return 0, true
	case h.mounts == nil:
		return 0, false
	}
	return h.mounts.key(id)
}

func (m *mounts) key(id uint64) (key uint64, ok bool) {
	m.follow()
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.byID[id]; p != nil {
		return p.key, true
	}
	return 0, false
}

// numbererOf is mounts.numberer; ok is false if mounts are not crossed.
func (h *host) numbererOf(id uint64) (by *handlemap.Numberer, key uint64, ok bool) {
	if h.mounts == nil {
		return nil, 0, false
	}
	by, key = h.mounts.numberer(id)
	return by, key, true
}

// numberer tells objects of the mount id apart, which has that key.
func (m *mounts) numberer(id uint64) (*handlemap.Numberer, uint64) {
	m.follow()
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.byID[id]; p != nil {
		return &p.by, p.key
	}
	return &handlemap.Numberer{}, 0
}

// open opens r on the mount of that key.
func (m *mounts) open(key uint64, r *linux.RawHandle) (int, error) {
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
func (m *mounts) follow() {
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
		m.h.o.Report(fmt.Errorf("localfs: %s: what is mounted below is not known: %w", m.h.rootPath, err))
		return
	}
	m.known = true
}

// changed reports whether the kernel's table is another than at the last call.
func (m *mounts) changed() bool {
	p := [1]unix.PollFd{{Fd: int32(m.info), Events: unix.POLLPRI}}
	n, err := unix.Poll(p[:], 0)
	return err != nil || n > 0
}

// read makes the table anew.
func (m *mounts) read() error {
	table, err := m.table()
	if err != nil {
		return err
	}
	var path [unix.PathMax]byte
	n, err := unix.Readlink(linux.ProcPath(m.h.rootFD), path[:])
	if err != nil {
		return linux.Fail("readlink", err)
	}
	var all []*mount
	for line := range bytes.Lines(table) {
		id, point, ok := parseMount(line)
		if !ok || id == m.h.rootMount || !below(point, path[:n]) {
			continue
		}
		if len(all) >= maxMounts {
			m.h.o.Report(fmt.Errorf("localfs: %s: more than %d mounts; the others are hidden: %w", m.h.rootPath, maxMounts, vfs.ErrXDev))
			break
		}
		if p, err := m.h.openMount(id, string(point)); err == nil {
			all = append(all, p)
		} else if !errors.Is(err, vfs.ErrXDev) {
			m.h.o.Report(fmt.Errorf("localfs: what is mounted on %q is hidden: %w", point, err))
		}
	}
	m.replace(all)
	return nil
}

// table reads the kernel's table.
func (m *mounts) table() ([]byte, error) {
	var b []byte
	for len(b) < maxMountInfo {
		b = append(b, make([]byte, direntBuffer)...)
		at := len(b) - direntBuffer
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
func (m *mounts) replace(all []*mount) {
	for _, p := range m.byID {
		p.seal.close(m.h)
		_ = unix.Close(p.fd) // it was read only: nothing can be lost
		m.h.fds.Lend(-1)
	}
	m.byID, m.byKey = make(map[uint64]*mount, len(all)), make(map[uint64]*mount, len(all))
	for _, p := range all {
		m.h.fds.Lend(1)
		m.byID[p.id] = p
		if m.byKey[p.key] == nil {
			m.byKey[p.key] = p
		}
	}
}

// openMount opens the mount id, which is said to be at point. ErrXDev: it is not,
// because another one covers it.
func (h *host) openMount(id uint64, point string) (*mount, error) {
	ref, err := unix.Open(point, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, linux.Fail("open", err)
	}
	p, err := h.mountOf(id, ref)
	if err := linux.Close(ref, err); err != nil {
		return nil, err
	}
	return p, nil
}

// mountOf makes a mount of its root.
func (h *host) mountOf(id uint64, ref int) (*mount, error) {
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
	if h.mode == HandlesKernel {
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
	by := handlemap.NewNumberer(ref, &st, int64(sfs.Type), h.o.noHandles)
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

// unescape replaces the octal numbers of blanks and backslashes in a path.
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
