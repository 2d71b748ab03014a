//go:build !linux || 386 || s390x || race

package oncrpc

import (
	"io"
	"net"
	"syscall"
)

// quick is nc: there is no quicker way.
func quick(nc net.Conn, _ syscall.RawConn) io.ReadWriter { return nc }
