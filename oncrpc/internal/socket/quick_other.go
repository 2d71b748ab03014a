//go:build !linux || 386 || s390x || race

package socket

import (
	"io"
	"net"
	"syscall"
)

// quick returns nc: there is no quicker way here.
func quick(nc net.Conn, _ syscall.RawConn) io.ReadWriter { return nc }
