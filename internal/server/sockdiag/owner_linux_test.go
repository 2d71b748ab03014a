package sockdiag

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// closeLater closes what the test has opened, and may have closed.
func closeLater(t *testing.T, c io.Closer) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// pair is a connection within this host; the near end is the one accepted.
func pair(t *testing.T, listen, dial string) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Skip(err) // a host without IPv6
	}
	closeLater(t, l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f, err := net.Dial("tcp", net.JoinHostPort(dial, port))
	if err != nil {
		t.Fatal(err)
	}
	n, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	near, far = n.(*net.TCPConn), f.(*net.TCPConn)
	closeLater(t, near)
	closeLater(t, far)
	return near, far
}

// TestOwner knows this process by every kind of address.
func TestOwner(t *testing.T) {
	for _, x := range [][2]string{{"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "::1"}, {"[::]:0", "127.0.0.1"}, {"[::]:0", "::1"}, {"0.0.0.0:0", "127.0.0.2"}} {
		t.Run(x[0]+" "+x[1], func(t *testing.T) {
			near, far := pair(t, x[0], x[1])
			if uid, err := Owner(near); err != nil || int(uid) != os.Geteuid() {
				t.Errorf("%d, %v", uid, err)
			}
			if uid, err := Owner(far); err != nil || int(uid) != os.Geteuid() {
				t.Errorf("of the other end: %d, %v", uid, err)
			}
			if err := far.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if uid, err := Owner(near); err != nil || int(uid) != os.Geteuid() {
				t.Errorf("of one that has said all: %d, %v", uid, err)
			}
		})
	}
	if err := Works(); err != nil {
		t.Error(err)
	}
}

// TestOwnerClosed does not take what is left of a socket for root's, which is what
// the kernel says of it.
func TestOwnerClosed(t *testing.T) {
	near, far := pair(t, "127.0.0.1:0", "127.0.0.1")
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if uid, err := Owner(near); !errors.Is(err, ErrUnknown) {
		t.Errorf("closed: %d, %v", uid, err)
	}
	near, far = pair(t, "127.0.0.1:0", "127.0.0.1")
	if err := far.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if uid, err := Owner(near); !errors.Is(err, ErrUnknown) {
		t.Errorf("reset: %d, %v", uid, err)
	}
	pipe, _ := net.Pipe()
	if _, err := Owner(pipe); !errors.Is(err, ErrUnknown) {
		t.Errorf("a pipe: %v", err)
	}
}

// TestOwnerOther knows another user by the socket that it has made.
func TestOwnerOther(t *testing.T) {
	need.Root(t, "to make a socket as another user")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	const uid = 4711
	dialed := make(chan net.Conn, 1)
	go func() {
		defer close(dialed)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Setfsuid(uid); err != nil {
			t.Error(err)
			return
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		dialed <- c
	}()
	far := <-dialed
	if far == nil {
		return
	}
	closeLater(t, far)
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, nc)
	if got, err := Owner(nc); err != nil || got != uid {
		t.Errorf("%d, %v; want %d", got, err, uid)
	}
}
