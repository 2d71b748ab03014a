//go:build unix

package oncrpc

import "syscall"

// canPeek says that a caller can look whether the server has closed a connection
// without reading from it. Elsewhere somebody reads all the time.
const canPeek = true

// alive looks whether a connection that nobody reads and nobody waits on is
// open. A server that has closed it, and one that says what nobody has asked
// for, are not worth a call that may not be repeated.
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
