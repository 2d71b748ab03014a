//go:build unix

package socket

import "syscall"

// CanPeek says that Alive can tell. Where it cannot, a goroutine has to read all the time
// to learn that the server has closed.
const CanPeek = true

// Alive reports whether the connection is open and silent: the server has neither closed
// it nor sent anything that is still to be read. No goroutine may be reading.
func (s *Socket) Alive() bool {
	quiet := false
	err := s.raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		for err == syscall.EINTR {
			_, _, err = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		}
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	})
	return err == nil && quiet
}
