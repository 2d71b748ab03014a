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

// words is a mapping of a page. It stays mapped until it is unreachable, so that no access
// faults, however late; or until unmap.
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

// unmap ends the mapping. No other goroutine uses it.
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

// Page is the server's side of the page, and its only writer. All methods may be called
// concurrently, also after Close, when stores have no effect.
type Page struct {
	mu sync.RWMutex // read-locked while m is used
	m  *words       // guarded by mu; empty: closed
	fd atomic.Int64 // -1: closed
}

// sealed is what no process can do to a page any more: shrink it, which would make the client's
// loads fault, grow it, map it for writing or write to it, or remove these seals.
const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL

// NewPage makes a page of zeros, with one word and then one for each slot.
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

// newPage makes a page of fd, which the caller may close afterwards.
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

// FD is the descriptor to send to the client, until Close. It is read-only.
func (p *Page) FD() int { return int(p.fd.Load()) }

// Load returns word i: 0 is the first, the slots' follow.
func (p *Page) Load(i int) uint32 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.m.load(i)
}

// Store sets word i; the client's next load sees it.
func (p *Page) Store(i int, v uint32) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if i < len(p.m.w) {
		atomic.StoreUint32(&p.m.w[i], v)
	}
}

// Close closes the descriptor and ends the mapping at once: clients may come and go faster than
// garbage is collected, and the kernel bounds the mappings of a process. The client's view is
// not affected.
func (p *Page) Close() {
	p.mu.Lock()
	m := p.m
	p.m = &words{}
	p.mu.Unlock()
	if len(m.w) > 0 {
		m.unmap()
	}
	if fd := p.fd.Swap(-1); fd >= 0 {
		// It was only read, so an error loses nothing.
		_ = unix.Close(int(fd))
	}
}

// View is the client's side of the page.
type View struct{ m atomic.Pointer[words] }

// MapPage maps the page fd, which the caller keeps and may close afterwards. A file that its
// owner could shrink, so that loads fault, is an error.
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

// checkSealed checks that fd is a file in memory of the size of a page, and will keep that
// size. (Huge pages have seals, too, but can run out.)
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

// Load returns word i as the server has set it, and 0 for a word that does not exist. It may be
// called concurrently, and after Close.
func (v *View) Load(i int) uint32 { return v.m.Load().load(i) }

// Close makes every word read as 0 from now on, so that nothing is valid any more. It may be
// called several times.
func (v *View) Close() { v.m.Store(&words{}) }
