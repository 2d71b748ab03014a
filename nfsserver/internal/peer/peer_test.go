package peer

import (
	"errors"
	"net"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/vfs"
)

func testConn(t *testing.T) *Conn {
	t.Helper()
	table, err := export.NewTable(export.Key{}, export.Export{Path: "/", FS: memfs.New(memfs.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	return NewConn(table, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700})
}

func auth(t *testing.T, a oncrpc.AuthSys) oncrpc.Auth {
	t.Helper()
	auth, err := a.Auth()
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

// TestSameView shares a view among equal credentials, whatever their stamp.
func TestSameView(t *testing.T) {
	c := testConn(t)
	ann := auth(t, oncrpc.AuthSys{Stamp: 1, UID: 1, GID: 2, GIDs: []uint32{3, 4}})
	first, err := c.View(ann)
	if err != nil {
		t.Fatal(err)
	}
	if w := first.Caller; w.UID != 1 || w.GID != 2 || !w.InGroup(4) || w.Client != "192.0.2.1" {
		t.Errorf("caller %+v", w)
	}
	if again, err := c.View(auth(t, oncrpc.AuthSys{Stamp: 2, UID: 1, GID: 2, GIDs: []uint32{3, 4}})); err != nil || again != first {
		t.Errorf("another stamp is another caller (%v)", err)
	}
	if other, err := c.View(auth(t, oncrpc.AuthSys{Stamp: 1, UID: 1, GID: 2, GIDs: []uint32{3}})); err != nil || other == first {
		t.Errorf("other groups are the same caller (%v)", err)
	}
	if again, err := c.View(ann); err != nil || again != first {
		t.Errorf("the first caller is forgotten (%v)", err)
	}
	if none, err := c.View(oncrpc.Auth{}); err != nil || none.Caller.UID != export.Anonymous || none.Caller.GID != export.Anonymous {
		t.Errorf("AUTH_NONE is %+v (%v)", none, err)
	}
}

func TestViewsAreBounded(t *testing.T) {
	c := testConn(t)
	for uid := range uint32(3*maxViews + 1) {
		v, err := c.View(auth(t, oncrpc.AuthSys{UID: uid}))
		if err != nil || v.Caller.UID != uid {
			t.Fatalf("uid %d is %+v, %v", uid, v, err)
		}
		if len(c.views) > maxViews {
			t.Fatalf("%d views", len(c.views))
		}
	}
	if len(c.views) != maxViews {
		t.Errorf("%d views: a newcomer costs more than one", len(c.views))
	}
}

func TestViewAllocs(t *testing.T) {
	c := testConn(t)
	a, b := auth(t, oncrpc.AuthSys{UID: 1}), auth(t, oncrpc.AuthSys{UID: 2})
	n := testing.AllocsPerRun(100, func() {
		for _, cred := range []oncrpc.Auth{a, b, {}} {
			if _, err := c.View(cred); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for callers that are known, want 0", n)
	}
}

// TestRules judges callers by the address of their connection, and by where
// their port is, whatever they claim.
func TestRules(t *testing.T) {
	table, err := export.NewTable(export.Key{}, export.Export{
		Path: "/", FS: memfs.New(memfs.Options{}), Clients: []export.Rule{{Match: "192.0.2.0/24", Secure: true}, {Match: "2001:db8::1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		remote net.Addr
		want   error
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700}, nil},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1).To4(), Port: 700}, nil},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 40000}, vfs.ErrAccess},
		{&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 700}, nil},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 40000, Zone: "eth0"}, nil},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 3, 1), Port: 700}, vfs.ErrAccess},
		{&net.TCPAddr{Port: 700}, vfs.ErrAccess},
		{&net.UnixAddr{Name: "192.0.2.1", Net: "unix"}, vfs.ErrAccess},
		{pipeAddr(), vfs.ErrAccess},
		{nil, vfs.ErrAccess},
	} {
		c := NewConn(table, x.remote)
		for _, cred := range []oncrpc.Auth{{}, auth(t, oncrpc.AuthSys{Machine: "192.0.2.1"})} {
			v, err := c.View(cred)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := v.FS.Root(t.Context()); !errors.Is(err, x.want) {
				t.Errorf("%v: %v, want %v", x.remote, err, x.want)
			}
		}
	}
}

func TestHost(t *testing.T) {
	for want, a := range map[string]net.Addr{
		"192.0.2.1": &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1},
		"::1":       &net.TCPAddr{IP: net.IPv6loopback, Port: 1},
		"pipe":      pipeAddr(),
		"":          nil,
	} {
		if got := host(a); got != want {
			t.Errorf("%v: %q, want %q", a, got, want)
		}
	}
}

func pipeAddr() net.Addr {
	a, _ := net.Pipe()
	return a.RemoteAddr()
}
