//go:build nfsbox_cthreads && cgo

package iogate

// #cgo CFLAGS: -D_FILE_OFFSET_BITS=64 -O2 -Wall
// #cgo LDFLAGS: -pthread
// #include "threads.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cthreads hands calls to POSIX threads. A call into C ends when the call has
// been handed over, since a goroutine in C holds a thread of Go's; the threads
// tell of results through an eventfd, on which the runtime's poller waits.
type cthreads struct {
	pool  *C.struct_iogate_pool
	event *os.File
	calls []call
	pins  []runtime.Pinner // C keeps p until the result is taken
	all   sync.WaitGroup
	have  threads
}

var threadOps = [...]C.int{
	opRead:      C.IOGATE_READ,
	opWrite:     C.IOGATE_WRITE,
	opFsync:     C.IOGATE_FSYNC,
	opFdatasync: C.IOGATE_FDATASYNC,
}

func startThreads(p *pool, o *Options) (backend, error) {
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd2", err)
	}
	t := &cthreads{event: os.NewFile(uintptr(event), "eventfd"), calls: p.calls, pins: make([]runtime.Pinner, len(p.calls))}
	var pin C.int
	if o.Affinity {
		pin = 1
	}
	var made C.struct_iogate_made
	t.pool = C.iogate_open(C.int(o.Threads), C.int(o.Priority), pin, C.int(event), &made)
	if t.pool == nil {
		return nil, errors.Join(os.NewSyscallError("pthread_create", unix.Errno(made.error)), t.event.Close())
	}
	t.have = threads{n: o.Threads, priority: int(made.priority), pinned: int(made.pinned)}
	var notes []string
	if e := unix.Errno(made.priority_error); e != 0 {
		notes = append(notes, fmt.Sprintf("real-time priority: %v", e))
	}
	if e := unix.Errno(made.pinned_error); e != 0 {
		notes = append(notes, fmt.Sprintf("affinity: %v", e))
	}
	t.have.note = strings.Join(notes, "; ")
	t.all.Go(t.reap)
	return t, nil
}

func (t *cthreads) start(c *call) {
	var p unsafe.Pointer
	if len(c.p) > 0 {
		t.pins[c.index].Pin(&c.p[0])
		p = unsafe.Pointer(&c.p[0])
	}
	C.iogate_start(t.pool, C.uint32_t(c.index), threadOps[c.op], C.int(c.fd), p, C.size_t(len(c.p)), C.off_t(c.off))
}

// reap takes results in, until the eventfd is closed.
func (t *cthreads) reap() {
	var count [8]byte
	results := make([]C.struct_iogate_result, len(t.calls)) // as many as can be under way
	for {
		if _, err := t.event.Read(count[:]); err != nil {
			return
		}
		n := C.iogate_results(t.pool, &results[0], C.int(len(results)))
		for _, r := range results[:n] {
			c := &t.calls[r.index]
			c.n, c.err = int(r.n), nil
			if r.error != 0 {
				c.err = unix.Errno(r.error)
			}
			t.pins[r.index].Unpin()
			c.done <- struct{}{}
		}
	}
}

func (t *cthreads) threads() threads { return t.have }

func (t *cthreads) close() error {
	C.iogate_stop(t.pool) // before event's number is somebody else's
	err := t.event.Close()
	t.all.Wait()
	C.iogate_free(t.pool)
	return err
}
