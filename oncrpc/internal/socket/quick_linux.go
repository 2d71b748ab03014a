//go:build linux && !386 && !s390x && !race

package socket

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quickSocket is a non-blocking socket that is read and written by raw system calls:
// recvfrom and sendto with MSG_DONTWAIT, without entersyscall and exitsyscall. On EAGAIN
// it parks in netpoll, as package net does, through RawConn.Read and RawConn.Write.
//
// entersyscall tells the scheduler that a thread may block, so that sysmon can retake its
// P. These calls do not block, and the bookkeeping, with sysmon woken for it again and
// again, are a third of what a small call costs. The price: the thread cannot be preempted
// in the call, and stopping the world for a garbage collection waits for it. Therefore
// one call moves at most quickBytes.
//
// netpoll does not wake sysmon when it makes a goroutine runnable, so that a sleeping
// sysmon does not see a goroutine that then runs for long. The timer of oncrpc.Client bounds
// its sleep to 10 ms while there are calls.
//
// One goroutine may read and one may write at a time. The race detector learns from
// package syscall alone that a write happens before the read of its bytes. With it, and
// on 386 and s390x, where older kernels lack these calls, net.Conn is used as it is.
type quickSocket struct {
	net.Conn
	raw     syscall.RawConn
	in, out direction
}

// direction is reading or writing.
type direction struct {
	p   []byte // to be read into, or written
	n   int    // bytes moved
	err syscall.Errno
	try func(fd uintptr) bool // makes the call; false: wait in netpoll, and try again
}

// quick returns nc as a quickSocket. raw is nc's.
func quick(nc net.Conn, raw syscall.RawConn) io.ReadWriter {
	q := &quickSocket{Conn: nc, raw: raw}
	q.in.try = func(fd uintptr) bool { return q.in.move(unix.SYS_RECVFROM, fd, unix.MSG_DONTWAIT) }
	q.out.try = func(fd uintptr) bool { return q.out.move(unix.SYS_SENDTO, fd, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) }
	return q
}

// move makes one system call, or another after EINTR. It does not loop over more bytes:
// raw calls in a row would hold off a garbage collection as one long call does.
func (d *direction) move(trap, fd, flags uintptr) bool {
	p := d.p[:min(len(d.p), quickBytes)]
	d.n, d.err = 0, syscall.EINTR
	for d.err == syscall.EINTR {
		var n uintptr
		n, _, d.err = syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		if d.err == 0 {
			d.n = int(n)
		}
	}
	return d.err != syscall.EAGAIN
}

// Read reads as a net.Conn does.
func (q *quickSocket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := q.do(&q.in, q.raw.Read, "read", p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write writes as a net.Conn does.
func (q *quickSocket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := q.do(&q.out, q.raw.Write, "write", p[done:])
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF // as net.Conn does, so that the loop ends
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// do moves bytes of p, and waits in netpoll while none can be moved. when is the RawConn's
// Read or Write.
func (q *quickSocket) do(d *direction, when func(func(uintptr) bool) error, op string, p []byte) (int, error) {
	d.p = p
	err := when(d.try)
	d.p = nil
	switch {
	case err != nil:
		return 0, err
	case d.err != 0:
		err = os.NewSyscallError(op, d.err)
		return 0, &net.OpError{Op: op, Net: q.LocalAddr().Network(), Source: q.LocalAddr(), Addr: q.RemoteAddr(), Err: err}
	}
	return d.n, nil
}
