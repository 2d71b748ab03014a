package oncrpc

import "syscall"

// wakeAt has a read that finds nothing wait until n bytes are there, or the
// connection has ended, or the kernel has no room for more (SO_RCVLOWAT, tcp(7)).
// Without it whoever waits for a long reply is woken for each piece of it that
// arrives, and to be woken costs more than to copy the piece. Only the reader
// calls it.
func (cc *clientConn) wakeAt(n int) {
	if n < bulkWake {
		n = 1
	}
	n = min(n, maxWake)
	if n == cc.wakes || cc.raw == nil {
		return
	}
	if cc.setWakes == nil {
		cc.setWakes = func(fd uintptr) {
			// A kernel that refuses wakes the reader as it always did.
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, cc.wakes)
		}
	}
	cc.wakes = n
	_ = cc.raw.Control(cc.setWakes) // of a closed connection the next read tells
}
