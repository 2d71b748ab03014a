package iogate

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's side of io_uring, as in include/uapi/linux/io_uring.h.

const (
	uringRead  = 22 // IORING_OP_READ, Linux 5.6
	uringWrite = 23 // IORING_OP_WRITE, Linux 5.6
	uringFsync = 3  // IORING_OP_FSYNC, Linux 5.1

	uringDataSync = 1 // IORING_FSYNC_DATASYNC

	uringSubmitAll  = 1 << 7 // IORING_SETUP_SUBMIT_ALL, Linux 5.18
	uringSingleMmap = 1 << 0 // IORING_FEAT_SINGLE_MMAP, Linux 5.4
	uringNoDrop     = 1 << 1 // IORING_FEAT_NODROP, Linux 5.5

	uringOffRings = 0          // IORING_OFF_SQ_RING
	uringOffSqes  = 0x10000000 // IORING_OFF_SQES

	uringRegisterEvent   = 4  // IORING_REGISTER_EVENTFD
	uringRegisterProbe   = 8  // IORING_REGISTER_PROBE
	uringRegisterWorkers = 19 // IORING_REGISTER_IOWQ_MAX_WORKERS, Linux 5.15

	uringSupported = 1 // IO_URING_OP_SUPPORTED
)

// uringParams is struct io_uring_params.
type uringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sq                                                                     struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		userAddr                                            uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		userAddr                                            uint64
	}
}

// sqe is struct io_uring_sqe, as far as we use it.
type sqe struct {
	op, flags uint8
	ioprio    uint16
	fd        int32
	off       uint64
	addr      uint64
	len       uint32
	opFlags   uint32
	user      uint64
	_         [3]uint64
}

// cqe is struct io_uring_cqe.
type cqe struct {
	user  uint64
	res   int32
	flags uint32
}

// uringProbe is struct io_uring_probe with all its operations.
type uringProbe struct {
	last, n uint8
	_       uint16
	_       [3]uint32
	ops     [256]struct {
		op, _ uint8
		flags uint16
		_     uint32
	}
}

func uringSetup(entries int, p *uringParams) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	if errno != 0 {
		return -1, os.NewSyscallError("io_uring_setup", errno)
	}
	return int(fd), nil
}

func uringRegister(fd, what int, arg unsafe.Pointer, n int) error {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), uintptr(what), uintptr(arg), uintptr(n), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("io_uring_register", errno)
	}
	return nil
}

// uringEnter submits n entries and waits for none.
func uringEnter(fd int, n uint32) error {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), uintptr(n), 0, 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// probe says what fd's kernel lacks of what we need.
func probe(fd int, p *uringParams) error {
	if p.features&uringSingleMmap == 0 || p.features&uringNoDrop == 0 {
		return fmt.Errorf("io_uring of this kernel is too old (features %#x)", p.features)
	}
	ops := new(uringProbe)
	if err := uringRegister(fd, uringRegisterProbe, unsafe.Pointer(ops), len(ops.ops)); err != nil {
		return err
	}
	for _, op := range []int{uringRead, uringWrite, uringFsync} {
		if ops.ops[op].flags&uringSupported == 0 {
			return fmt.Errorf("io_uring of this kernel lacks operation %d", op)
		}
	}
	return nil
}
