package iogate

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// op is a data call.
type op uint8

const (
	opRead op = iota
	opWrite
	opFsync
	opFdatasync
)

// do makes the call on the calling thread.
func (o op) do(fd int, p []byte, off int64) (n int, err error) {
	switch o {
	case opRead:
		n, err = unix.Pread(fd, p, off)
	case opWrite:
		n, err = unix.Pwrite(fd, p, off)
	case opFsync:
		err = unix.Fsync(fd)
	case opFdatasync:
		err = unix.Fdatasync(fd)
	}
	return max(n, 0), err // -1 is none
}

// block is do for a call that is known to wait for the disk: see [Blocking]. A write
// does not as a rule, since it ends in memory.
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
