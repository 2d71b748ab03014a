//go:build unix

package daemon

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// dup is a descriptor of f that nothing else will close; f is closed.
func dup(t *testing.T, f *os.File) uintptr {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstInherited)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return uintptr(fd)
}

// TestInherit takes over a listener, a socket of datagrams, and nothing else.
func TestInherit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []interface{ Close() error }{l, pc, plain} {
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	for _, x := range []interface{ File() (*os.File, error) }{l.(*net.TCPListener), pc.(*net.UDPConn)} {
		f, err := x.File()
		if err != nil {
			t.Fatal(err)
		}
		got, err := inherit(dup(t, f))
		if err != nil {
			t.Fatal(err)
		}
		if a := got.addr().String(); a != l.Addr().String() && a != pc.LocalAddr().String() || got.portmap {
			t.Errorf("%s, portmap %v", a, got.portmap)
		}
		if err := got.close(); err != nil {
			t.Error(err)
		}
	}
	f, err := os.Open(plain.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Errorf("what is no socket is closed: %v", err)
		}
	}()
	if _, err := inherit(f.Fd()); err == nil {
		t.Error("a file is taken for a socket")
	}
}
