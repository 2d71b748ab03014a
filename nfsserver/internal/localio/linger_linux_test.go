package localio

import (
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// takeRights has the sockets of this process, and what comes of them, take
// descriptors, as all sockets did before Linux 6.16.
func takeRights(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		// It is not for other descriptors, nor for older kernels.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 1)
	}
}

// lingering is a descriptor whose last close waits, until release.
func lingering(t *testing.T) (fd int, release func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := out.(*net.TCPConn)
	if err := errors.Join(l.Close(), c.SetWriteDeadline(time.Now().Add(100*time.Millisecond))); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes were sent, %v", n, err)
	}
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	if fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), c.Close(), unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER,
		&unix.Linger{Onoff: 1, Linger: 1000})); err != nil {
		t.Fatal(err)
	}
	return fd, func() {
		// What is unread makes it a reset, by which the other end waits no longer.
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

// holdUp has a client hold up the goroutine that receives from it, until
// release. It may take some tries: if the server drops the descriptor first, the
// last close is the test's.
func holdUp(t *testing.T, client func() *near) (release func()) {
	t.Helper()
	for range 100 {
		fd, release := lingering(t)
		if err := client().c.Send(&localio.SessionMessage{Type: localio.SESSION_CLOSE}, fd); err != nil {
			t.Fatal(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- unix.Close(fd) }()
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
			return release
		case <-time.After(100 * time.Millisecond):
			release()
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
	}
	t.Fatal("the server is never the last to close")
	return nil
}

// TestLingering has clients send what does not close: it costs the threads that
// drop it, and nobody else waits.
func TestLingering(t *testing.T) {
	r := newRig(t, Options{})
	takeRights(t)
	for _, client := range []func() *near{
		func() *near { return stranger(t, r.dir) },
		func() *near { return greeted(t, r.dir, DefaultMaxFiles) },
		r.local,
	} {
		defer holdUp(t, client)()
	}
	for range maxStrangers + 2 { // the first must go
		stranger(t, r.dir)
	}
	n := r.local()
	if got := n.open(want(r.file("f", 0o644)))[0]; got.Why != localio.SESSION_OK {
		t.Errorf("%+v", got)
	}
	if err := r.s.Close(); err == nil {
		t.Error("nobody was held up")
	}
	n.ended()
}
