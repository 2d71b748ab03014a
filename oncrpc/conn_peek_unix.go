//go:build unix

package oncrpc

import "syscall"

// canPeek says that a caller can see without reading whether the server has closed a
// connection. Elsewhere a goroutine reads all the time.
const canPeek = true

// alive reports whether a connection without reader and calls is open and silent. If the
// server has closed it, or has sent bytes that no call waits for, a call that may not be
// repeated had better not go there.
func (cc *clientConn) alive() bool {
	quiet := false
	err := cc.raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		for err == syscall.EINTR {
			_, _, err = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		}
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	})
	return err == nil && quiet
}
