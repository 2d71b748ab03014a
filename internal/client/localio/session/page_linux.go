package session

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// words is a mapping of a page. It stays in place until nobody can reach it any
// more, so that no access ever faults, however late; or until unmap.
type words struct {
	w       []uint32
	cleanup runtime.Cleanup
}

// mapWords maps the page of fd.
func mapWords(fd, slots, prot int) (*words, error) {
	size := uintptr(pageSize(slots))
	p, err := unix.MmapPtr(fd, 0, nil, size, prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("localio: mapping the page: %w", err)
	}
	m := &words{w: unsafe.Slice((*uint32)(p), slots+1)}
	// An address that was mapped cannot fail to be unmapped.
	m.cleanup = runtime.AddCleanup(m, func(p unsafe.Pointer) { _ = unix.MunmapPtr(p, size) }, p)
	return m, nil
}

// unmap ends the mapping, which nobody uses any more.
func (m *words) unmap() {
	m.cleanup.Stop()
	_ = unix.MunmapPtr(unsafe.Pointer(&m.w[0]), uintptr(len(m.w))*wordSize) // as above
	runtime.KeepAlive(m)
}

func (m *words) load(i int) uint32 {
	if uint(i) >= uint(len(m.w)) {
		return 0
	}
	v := atomic.LoadUint32(&m.w[i])
	runtime.KeepAlive(m)
	return v
}

// Page is the server's side of the page: it alone writes. All methods may be called
// concurrently, and after Close, when nobody sees what is stored.
type Page struct {
	mu sync.RWMutex // held to be read while m is used
	m  *words       // guarded by mu; empty: closed
	fd atomic.Int64 // -1: closed
}

// sealed is what nobody can do to a page any more: make it shorter, which would
// have the client's loads fault, or longer, map it for writing or write to it, or
// take this back.
const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL

// NewPage makes a page of zeros, with a word for each slot behind the first.
func NewPage(slots int) (*Page, error) {
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("localio", flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("localio", flags)
	}
	if err != nil {
		return nil, fmt.Errorf("localio: memfd_create: %w", err)
	}
	p, err := newPage(fd, slots)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return nil, err
	}
	return p, nil
}

// newPage makes a page of fd, which is no longer needed then.
func newPage(fd, slots int) (*Page, error) {
	if err := unix.Ftruncate(fd, pageSize(slots)); err != nil {
		return nil, fmt.Errorf("localio: sizing the page: %w", err)
	}
	m, err := mapWords(fd, slots, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, sealed); err != nil {
		return nil, fmt.Errorf("localio: sealing the page: %w", err)
	}
	ro, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("localio: opening the page for reading: %w", err)
	}
	p := &Page{m: m}
	p.fd.Store(int64(ro))
	return p, nil
}

// FD is the descriptor to send to the client, until Close. It can only read.
func (p *Page) FD() int { return int(p.fd.Load()) }

// Load returns word i; there are none but the first and the slots'.
func (p *Page) Load(i int) uint32 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.m.load(i)
}

// Store sets word i, for the client to see at its next load.
func (p *Page) Store(i int, v uint32) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if i < len(p.m.w) {
		atomic.StoreUint32(&p.m.w[i], v)
	}
}

// Close gives the descriptor and the mapping back, at once: clients may come and go
// faster than garbage is collected, and the kernel bounds the mappings of a process.
// The client's view is its own.
func (p *Page) Close() {
	p.mu.Lock()
	m := p.m
	p.m = &words{}
	p.mu.Unlock()
	if len(m.w) > 0 {
		m.unmap()
	}
	if fd := p.fd.Swap(-1); fd >= 0 {
		// It was only read; nothing can be lost.
		_ = unix.Close(int(fd))
	}
}

// View is the client's side of the page.
type View struct{ m atomic.Pointer[words] }

// MapPage maps the page that came as fd, which stays the caller's and is not
// needed any longer. What could be made shorter by its owner, and thus fault, is
// an error.
func MapPage(fd, slots int) (*View, error) {
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	if err := checkSealed(fd, slots); err != nil {
		return nil, err
	}
	m, err := mapWords(fd, slots, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	v := &View{}
	v.m.Store(m)
	return v, nil
}

// checkSealed looks whether fd is a file in memory that has the size of a page,
// and will always have it. (Huge pages have seals, too, but can run out.)
func checkSealed(fd, slots int) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return fmt.Errorf("localio: the page's seals: %w", err)
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstatfs(fd, &fs)); err != nil {
		return fmt.Errorf("localio: the page's size: %w", err)
	}
	const want = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	if seals&want != want || fs.Type != unix.TMPFS_MAGIC {
		return errors.New("localio: the page is not sealed")
	}
	if st.Size < pageSize(slots) {
		return fmt.Errorf("localio: a page of %d bytes for %d slots", st.Size, slots)
	}
	return nil
}

// Load returns word i as the server has it now, and 0 where there is none. It may
// be called concurrently, and after Close.
func (v *View) Load(i int) uint32 { return v.m.Load().load(i) }

// Close has every word read as 0 from now on: what was valid is not any more. It
// may be called several times.
func (v *View) Close() { v.m.Store(&words{}) }
