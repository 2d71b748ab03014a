//go:build linux && !386 && !s390x && !race

package oncrpc

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quickSocket is a plain socket whose system calls Go's scheduler is not told of.
// They never block, so that there is nothing to tell; and telling, with the
// runtime's monitor being woken for it time and again, is a third of what a small
// call costs. Nothing interrupts them either, not even for a garbage collection,
// which is why one of them moves no more than quickBytes.
//
// A reader that has been woken has not woken the monitor, if that sleeps, so that it
// would not see what he does next take long. But it sleeps until the next timer at
// most, and while there are calls that of Client.tick is near.
//
// There may be one reader and one writer at a time. That a write comes before the
// read of what was written the race detector knows from package syscall alone; with
// it, and where the kernel's numbers of these calls are young, all goes the usual
// way.
type quickSocket struct {
	net.Conn
	raw     syscall.RawConn
	in, out direction
}

// direction is one of the two.
type direction struct {
	p   []byte // to be moved
	n   int    // bytes of it moved
	err syscall.Errno
	try func(fd uintptr) bool // moves what can be moved, and answers false if that is nothing
}

// quick is nc, made quicker.
func quick(nc net.Conn, raw syscall.RawConn) io.ReadWriter {
	q := &quickSocket{Conn: nc, raw: raw}
	q.in.try = func(fd uintptr) bool { return q.in.move(unix.SYS_RECVFROM, fd, unix.MSG_DONTWAIT) }
	q.out.try = func(fd uintptr) bool { return q.out.move(unix.SYS_SENDTO, fd, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) }
	return q
}

// move makes one system call: further ones in a loop, in which there is no call that
// Go's scheduler could stop at, would keep the world from stopping as one long one.
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

// Read is as that of a net.Conn.
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

// Write is as that of a net.Conn.
func (q *quickSocket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := q.do(&q.out, q.raw.Write, "write", p[done:])
		if n == 0 && err == nil {
			err = io.ErrUnexpectedEOF // as net.Conn: better than trying for ever
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// do moves bytes of p, and waits for the socket if none can be moved; when knows
// how.
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
