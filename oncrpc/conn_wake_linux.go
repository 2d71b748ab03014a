package oncrpc

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wakeAt has a read that finds nothing wait until n bytes are there, or the
// connection has ended, or the kernel has no room for more (SO_RCVLOWAT, tcp(7)).
// Without it a caller that waits for a long reply is woken for each piece of it that
// arrives, and to be woken costs more than to copy the piece. Only the reader
// calls it.
func (cc *clientConn) wakeAt(n int) {
	if n < bulkWake {
		n = 1
	}
	at := int32(min(n, maxWake))
	if at == cc.wakes || cc.raw == nil {
		return
	}
	if cc.setWakes == nil {
		cc.setWakes = func(fd uintptr) {
			// A kernel that refuses wakes the reader as it always did. Go's scheduler
			// need not be told of what does not wait.
			_, _, _ = syscall.RawSyscall6(unix.SYS_SETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT,
				uintptr(unsafe.Pointer(&cc.wakes)), unsafe.Sizeof(cc.wakes), 0)
		}
	}
	cc.wakes = at
	_ = cc.raw.Control(cc.setWakes) // of a closed connection the next read tells
}
