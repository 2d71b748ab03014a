package iogate

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring hands calls to an io_uring.
//
// One goroutine submits, on a thread of its own: the kernel finishes a read on
// the thread that submitted it, which must therefore never be stuck in another
// call, and it keeps workers for each thread that submits. Calls that come while
// it is at it are submitted together. Another goroutine takes results in; the
// kernel wakes it through an eventfd, on which the runtime's poller waits, and no
// thread.
type ring struct {
	fd    int
	event *os.File
	calls []call
	rings []byte // both rings, shared with the kernel
	sqmem []byte

	sqHead, sqTail *uint32
	sqMask         uint32
	sqArray        []uint32
	sqes           []sqe
	cqHead, cqTail *uint32
	cqMask         uint32
	cqes           []cqe

	mu      sync.Mutex
	pending []*call // guarded by mu
	batch   []*call // the submitter's
	bell    chan struct{}
	all     sync.WaitGroup

	// sent is stored before calls go to the kernel and loaded when they are back:
	// Go's memory model does not follow them through memory that is not Go's.
	sent atomic.Uint32

	note string
}

// startRing makes a ring for the calls of p.
func startRing(p *pool) (_ *ring, err error) {
	r := &ring{fd: -1, calls: p.calls, bell: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.free())
		}
	}()
	if err := r.open(); err != nil {
		return nil, err
	}
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd2", err)
	}
	r.event = os.NewFile(uintptr(event), "eventfd") // not blocking: the poller's
	number := int32(event)
	if err := uringRegister(r.fd, uringRegisterEvent, unsafe.Pointer(&number), 1); err != nil {
		return nil, err
	}
	workers := [2]uint32{uint32(len(p.calls)), uint32(len(p.calls))}
	if err := uringRegister(r.fd, uringRegisterWorkers, unsafe.Pointer(&workers), len(workers)); err != nil {
		r.note = fmt.Sprintf("the kernel's workers are not bounded: %v", err)
	}
	r.all.Go(r.submit)
	r.all.Go(r.reap)
	return r, nil
}

// open sets the ring up and maps it.
func (r *ring) open() (err error) {
	p := uringParams{flags: uringSubmitAll}
	r.fd, err = uringSetup(len(r.calls), &p)
	if errors.Is(err, unix.EINVAL) { // a kernel that does not know the flag
		p = uringParams{}
		r.fd, err = uringSetup(len(r.calls), &p)
	}
	if err != nil {
		return err
	}
	if err := probe(r.fd, &p); err != nil {
		return err
	}
	size := max(int(p.sq.array)+4*int(p.sqEntries), int(p.cq.cqes)+int(unsafe.Sizeof(cqe{}))*int(p.cqEntries))
	const prot, how = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.rings, err = unix.Mmap(r.fd, uringOffRings, size, prot, how); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if r.sqmem, err = unix.Mmap(r.fd, uringOffSqes, int(p.sqEntries)*int(unsafe.Sizeof(sqe{})), prot, how); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[off])) }
	r.sqHead, r.sqTail, r.sqMask = word(p.sq.head), word(p.sq.tail), *word(p.sq.mask)
	r.cqHead, r.cqTail, r.cqMask = word(p.cq.head), word(p.cq.tail), *word(p.cq.mask)
	r.sqArray = unsafe.Slice(word(p.sq.array), p.sqEntries)
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.sqmem[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	return nil
}

// start implements backend.
func (r *ring) start(c *call) {
	if c.off < 0 || len(c.p) > math.MaxInt32 { // -1 has a meaning of its own there
		c.decline()
		return
	}
	r.mu.Lock()
	r.pending = append(r.pending, c)
	r.mu.Unlock()
	select {
	case r.bell <- struct{}{}:
	default: // rung already
	}
}

// decline leaves c to its caller.
func (c *call) decline() {
	c.direct = true
	c.done <- struct{}{}
}

// submit is the submitter.
func (r *ring) submit() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range r.bell {
		r.mu.Lock()
		r.batch, r.pending = r.pending, r.batch[:0]
		r.mu.Unlock()
		r.push()
		clear(r.batch)
	}
}

// push submits the batch. There are as many entries as calls: they have room.
func (r *ring) push() {
	tail := atomic.LoadUint32(r.sqTail)
	for i, c := range r.batch {
		at := (tail + uint32(i)) & r.sqMask
		r.sqes[at] = c.entry()
		r.sqArray[at] = at
	}
	end := tail + uint32(len(r.batch))
	r.sent.Store(end)
	atomic.StoreUint32(r.sqTail, end)
	for {
		taken := atomic.LoadUint32(r.sqHead)
		if taken == end {
			return
		}
		// Without the flag to submit all, the kernel stops behind each entry
		// that it finds fault with, and has taken it.
		if err := uringEnter(r.fd, end-taken); err != nil {
			break
		}
		if atomic.LoadUint32(r.sqHead) == taken {
			break
		}
	}
	// The kernel is short of something. It looks at the tail when we call it, and
	// not in between, so that the rest can be taken back.
	taken := atomic.LoadUint32(r.sqHead)
	atomic.StoreUint32(r.sqTail, taken)
	for _, c := range r.batch[taken-tail:] {
		c.decline()
	}
}

// entry is what the kernel is told of c. The memory is kept, and kept in its
// place, by c: see call.
func (c *call) entry() sqe {
	e := sqe{fd: int32(c.fd), user: uint64(c.index)}
	switch c.op {
	case opFsync:
		e.op = uringFsync
	case opFdatasync:
		e.op, e.opFlags = uringFsync, uringDataSync
	case opRead:
		e.op = uringRead
	case opWrite:
		e.op = uringWrite
	}
	if c.op == opRead || c.op == opWrite {
		e.off, e.len = uint64(c.off), uint32(len(c.p))
		e.addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(c.p))))
	}
	return e
}

// reap takes results in, until the eventfd is closed.
func (r *ring) reap() {
	var count [8]byte
	for {
		if _, err := r.event.Read(count[:]); err != nil {
			return
		}
		r.results()
	}
}

// results takes in those that are there. Each entry goes back to the kernel
// before its caller goes on, so that no more are taken than there are calls. Were
// they given back at the end, callers who come again meanwhile could fill the
// ring; the kernel would then keep results back until it is asked for them.
func (r *ring) results() {
	head := atomic.LoadUint32(r.cqHead)
	for head != atomic.LoadUint32(r.cqTail) {
		e := r.cqes[head&r.cqMask]
		head++
		atomic.StoreUint32(r.cqHead, head)
		r.sent.Load()
		r.calls[e.user].result(e.res)
	}
}

// result is a count, or an error's number negated.
func (c *call) result(res int32) {
	c.n, c.err = int(res), nil
	if res < 0 {
		switch errno := unix.Errno(-res); errno {
		case unix.EAGAIN, unix.EINTR, unix.ECANCELED: // of the ring, and not of a file
			c.direct = true
		default:
			c.n, c.err = 0, errno
		}
	}
	c.done <- struct{}{}
}

// threads implements backend. The kernel's workers come and go, up to Bound.
func (r *ring) threads() threads { return threads{n: 1, note: r.note} }

// close implements backend.
func (r *ring) close() error {
	close(r.bell)
	err := r.event.Close()
	r.all.Wait() // reap reads r.event until then
	r.event = nil
	return errors.Join(err, r.free())
}

// free gives back what open has got hold of.
func (r *ring) free() error {
	var errs []error
	if r.event != nil {
		errs = append(errs, r.event.Close())
	}
	for _, mem := range [][]byte{r.sqmem, r.rings} {
		if mem != nil {
			errs = append(errs, os.NewSyscallError("munmap", unix.Munmap(mem)))
		}
	}
	if r.fd >= 0 {
		errs = append(errs, os.NewSyscallError("close", unix.Close(r.fd)))
	}
	return errors.Join(errs...)
}
