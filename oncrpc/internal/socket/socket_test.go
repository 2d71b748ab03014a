package socket

import (
	"net"
	"testing"
	"time"
)

// TestAlive: a connection is alive while it is open and silent.
func TestAlive(t *testing.T) {
	if !CanPeek {
		t.Skip("not on this system")
	}
	for name, end := range map[string]func(net.Conn) error{
		"bytes": func(c net.Conn) error { _, err := c.Write([]byte{1}); return err },
		"end":   net.Conn.Close,
	} {
		t.Run(name, func(t *testing.T) {
			nc, other := pair(t)
			s := Of(nc)
			if !s.Alive() {
				t.Fatal("not alive from the start")
			}
			if err := end(other); err != nil {
				t.Fatal(err)
			}
			for patience := time.Now().Add(20 * time.Second); s.Alive(); time.Sleep(time.Millisecond) {
				if time.Now().After(patience) {
					t.Fatal("still alive")
				}
			}
		})
	}
}

// TestOf: what is no plain socket is no Socket, and waking it is nothing.
func TestOf(t *testing.T) {
	a, b := net.Pipe()
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	if s := Of(a); s != nil {
		t.Errorf("a pipe is %+v", s)
	}
	Of(a).WakeAt(maxWake)
}

// pair is a connection and its other end.
func pair(t *testing.T) (*net.TCPConn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it has done its part
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() }) // some tests have closed it
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() }) // the same
	return nc.(*net.TCPConn), other.(*net.TCPConn)
}
