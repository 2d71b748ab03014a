package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WakeAt has a read that finds nothing sleep until n bytes have come, the connection has
// ended, or the kernel's buffer is full (SO_RCVLOWAT, socket(7)). Without it the reader
// of a long reply is woken for each piece that arrives, which costs more than to copy the
// piece. Only the reader calls it. On a nil Socket it does nothing.
func (s *Socket) WakeAt(n int) {
	if n < bulkWake {
		n = 1
	}
	at := int32(min(n, maxWake))
	if s == nil || at == s.wakes {
		return
	}
	if s.setWakes == nil {
		s.setWakes = func(fd uintptr) {
			// If the kernel refuses, it wakes the reader for each piece. The call does not
			// block, so Go's scheduler is not told.
			_, _, _ = syscall.RawSyscall6(unix.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT,
				uintptr(unsafe.Pointer(&s.wakes)), unsafe.Sizeof(s.wakes), 0)
		}
	}
	s.wakes = at
	_ = s.raw.Control(s.setWakes) // on a closed connection the next read fails
}
