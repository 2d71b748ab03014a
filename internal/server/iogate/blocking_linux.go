package iogate

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Blocking makes a system call which is known to wait for a disk, as
// [syscall.Syscall6] does, but gives the scheduler its processor back before it
// waits and not after it was missed. A thread in an ordinary system call keeps
// the processor until the runtime's monitor takes it away; the monitor comes by
// every 20 us in busy times, and every 10 ms in quiet ones. When on each
// processor somebody waits for the disk, nobody is served until then: a few slow
// reads are enough for that where there are few processors.
//
// For a call that does not block it is a waste of a microsecond or more.
//
//go:uintptrescapes
//go:nosplit
//go:norace
func Blocking(trap, a1, a2, a3, a4 uintptr) (uintptr, syscall.Errno) {
	enterBlocking()
	r, _, errno := syscall.RawSyscall6(trap, a1, a2, a3, a4, 0, 0)
	exitBlocking()
	return r, errno
}

// The runtime makes its own blocking calls between these two. It keeps their
// names and types for others that need them, which are to call both from one
// function that may not split its stack, and do nothing in between that is Go.

//go:linkname enterBlocking runtime.entersyscallblock
func enterBlocking()

//go:linkname exitBlocking runtime.exitsyscall
func exitBlocking()

// block makes the call on the calling thread, as do does, where it is known to wait
// for the disk. A write does not, as a rule: it is one to memory.
func (o op) block(fd int, p []byte, off int64) (int, error) {
	trap := uintptr(unix.SYS_PREAD64)
	switch {
	case o == opFsync:
		trap = unix.SYS_FSYNC
	case o == opFdatasync:
		trap = unix.SYS_FDATASYNC
	case o == opWrite || len(p) == 0 || unsafe.Sizeof(trap) < 8: // pread64 takes an offset in two halves there
		return o.do(fd, p, off)
	}
	n, errno := Blocking(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(off))
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
