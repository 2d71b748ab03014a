// Package socket has what a client does with a plain socket that package net does not:
// reads and writes of which the scheduler is not told, a look at whether the server has
// closed, and reads that sleep until much has come.
package socket

import (
	"io"
	"net"
	"syscall"
)

const (
	// quickBytes is how much one system call of a quickSocket moves at most: the bulk of a
	// READ for which the reader has slept (maxWake). It takes some hundred microseconds,
	// for which a garbage collection may have to wait. More bytes take further calls.
	quickBytes = 1 << 20

	// bulkWake is how many bytes must be outstanding for a read to sleep until all of
	// them have come, or maxWake of them, for which the kernel has room. For less it is
	// woken by the first.
	bulkWake = 128 << 10
	maxWake  = 1 << 20
)

// Socket is a plain socket. One goroutine may read and one may write at a time.
type Socket struct {
	// ReadWriter reads and writes as the net.Conn does, at less cost where the system
	// has a quicker way.
	io.ReadWriter

	raw      syscall.RawConn
	wakes    int32         // how many bytes wake a read: see WakeAt
	setWakes func(uintptr) // tells the kernel; made once
}

// Of returns nc as a Socket; nil if it is none, or if Alive cannot tell on this system.
func Of(nc net.Conn) *Socket {
	s, ok := nc.(syscall.Conn)
	if !ok || !CanPeek || !Vectored(nc) {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil // a closed connection: the first read says so
	}
	return &Socket{ReadWriter: quick(nc, raw), raw: raw, wakes: 1}
}

// Vectored reports whether one Write of several buffers ([net.Buffers]) on nc is one
// system call. On anything else it is a Write of each.
func Vectored(nc net.Conn) bool {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}
