package iogate

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nowait reads without blocking (preadv2(2) with RWF_NOWAIT).
type nowait struct {
	most   int64 // at it at once; 0: this kind does not
	inside atomic.Int64

	hits, misses, untried atomic.Uint64
}

func (w *nowait) init(k Kind) {
	if k == Auto {
		w.most = int64(nowaitPerCPU * runtime.GOMAXPROCS(0))
	}
}

func (w *nowait) counts() (hits, misses, untried uint64) {
	return w.hits.Load(), w.misses.Load(), w.untried.Load()
}

func preadNowait(fd int, p []byte, off int64) (int, unix.Errno) {
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	at, lo, hi := uintptr(fd), uintptr(off), uintptr(off>>32)
	var n uintptr
	var errno unix.Errno
	if len(p) <= nowaitRaw {
		n, _, errno = unix.RawSyscall6(unix.SYS_PREADV2, at, uintptr(unsafe.Pointer(&v)), 1, lo, hi, unix.RWF_NOWAIT)
	} else {
		n, _, errno = unix.Syscall6(unix.SYS_PREADV2, at, uintptr(unsafe.Pointer(&v)), 1, lo, hi, unix.RWF_NOWAIT)
	}
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
