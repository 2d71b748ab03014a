package oncrpc

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestClientName checks which addresses are the same client.
func TestClientName(t *testing.T) {
	long := make([]byte, 1000)
	for _, c := range []struct {
		a    net.Addr
		want string
	}{
		{nil, ""},
		{addr("192.0.2.1", 700), "192.0.2.1"},
		{&net.UDPAddr{IP: net.ParseIP("192.0.2.1").To4(), Port: 3}, "192.0.2.1"},
		{addr("::ffff:192.0.2.1", 3), "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, "fe80::1%eth0"},
		{pipeAddr{}, "pipe"},
		{&net.UnixAddr{Net: "unix", Name: "/run/x"}, "/run/x"},
		{&net.UnixAddr{Net: "unix", Name: string(long)}, string(long[:MaxClientName])},
		{textAddr("[2001:db8::1]:77"), "2001:db8::1"},
	} {
		if got := ClientOf(c.a); got != c.want {
			t.Errorf("%v is %q, want %q", c.a, got, c.want)
		}
	}
}

type textAddr string

func (textAddr) Network() string  { return "text" }
func (a textAddr) String() string { return string(a) }

// TestUserNames: users that share an address have different names, and each name leads back
// to its share, as a saved cache needs it.
func TestUserNames(t *testing.T) {
	for _, c := range []struct {
		a           net.Addr
		name, share string
	}{
		{addr("127.0.0.1", 700), "127.0.0.1", "127.0.0.1"},
		{&UserAddr{addr("127.0.0.1", 700), 1000}, "1000@127.0.0.1", "1000@"},
		{&UserAddr{addr("127.0.0.9", 700), 1000}, "1000@127.0.0.9", "1000@"},
		{&UserAddr{addr("::1", 700), 1000}, "1000@::1", "1000@"},
		{&UserAddr{addr("::1", 700), 0}, "0@::1", "0@"},
		{&UserAddr{addr("127.0.0.1", 700), UnknownUser}, "?@127.0.0.1", "?@"},
		{addr("2001:db8::1", 700), "2001:db8::1", "2001:db8::/64"},
		{textAddr("x@127.0.0.1"), "x@127.0.0.1", "x@127.0.0.1"},
		{textAddr("1000@y"), "1000@y", "1000@y"},
	} {
		if name, share := ClientOf(c.a), ShareOf(c.a); name != c.name || share != c.share || ShareOfClient(name) != c.share {
			t.Errorf("%v is %q of %q, and %q when it was saved; want %q of %q", c.a, name, share, ShareOfClient(name), c.name, c.share)
		}
	}
	u := &UserAddr{addr("127.0.0.1", 700), 1000}
	if u.String() != "1000@127.0.0.1:700" || UserOf(u) != "1000" || UserOf(u.Addr) != "" || u.AddrPort().Port() != 700 {
		t.Errorf("%v, of %q", u, UserOf(u))
	}
	if p := (&UserAddr{Addr: pipeAddr{}}).AddrPort(); p.IsValid() {
		t.Errorf("a pipe is at %v", p)
	}
}

// inTurn is for ServerOptions.Peer: the connections belong to these users, one by one.
func inTurn(users ...uint32) func(net.Conn, net.Addr, net.Addr) net.Addr {
	var n atomic.Int32
	return func(_ net.Conn, remote, _ net.Addr) net.Addr { return &UserAddr{remote, users[n.Add(1)-1]} }
}

// TestUsersReplies: a user gets no reply to the call of another user at the same address,
// even if credential and everything else are the same.
func TestUsersReplies(t *testing.T) {
	s := newService()
	_, to := startServer(t, s, ServerOptions{Replies: NewTestCache(), Peer: inTurn(1, 2, 1, UnknownUser)})
	call := record(onceMessage(7, AuthSys{UID: 1}, "x"))
	for i, want := range []int{1, 2, 2, 3} {
		r := dialRaw(t, to)
		r.send(call)
		r.mustReply(7)
		if n := s.executed(); n != want {
			t.Errorf("after call %d, %d were executed, want %d", i, n, want)
		}
	}
}

// TestUsersConns: a user who connects without end, from all addresses of loopback,
// has its own share of the connections, and others at the same address keep theirs.
func TestUsersConns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, share = 4 * minShareConns, (4*minShareConns - 10) / 2 // what the other leaves, divided
		srv, err := NewServer(nil, ServerOptions{MaxConns: most, Peer: func(_ net.Conn, remote, _ net.Addr) net.Addr {
			at := remote.(*net.TCPAddr)
			return &UserAddr{at, uint32(at.Port)}
		}})
		if err != nil {
			t.Fatal(err)
		}
		come := func(ip string, user int) {
			_, far := net.Pipe()
			srv.accept(connFrom{far, addr(ip, user)})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for range 10 {
			come("127.0.0.1", 1)
		}
		for i := range 2 * most {
			come(fmt.Sprint("127.0.0.", 1+i%50), 2)
		}
		count := make(map[string]int)
		for _, c := range srv.Conns() {
			count[UserOf(c.Remote)]++
		}
		if count["1"] != 10 || count["2"] != share {
			t.Errorf("%v, want 10 connections and %d", count, share)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestUsersMemory: the requests of one user that do not arrive leave the memory for
// those of another at the same address.
func TestUsersMemory(t *testing.T) {
	s := newService()
	users := make([]uint32, 9) // the last is another
	users[8] = 1
	srv, to := startServer(t, s, ServerOptions{MaxRequestBytes: 8 << 20, HeadTimeout: time.Hour, Peer: inTurn(users...)})
	begun := record(message(1, procWrite, append(words(1<<20), make([]byte, 1<<20)...)))[:2*smallRecord]
	for range 8 {
		dialRaw(t, to).send(begun)
	}
	waitFor(t, "half of the memory to be taken", func() bool { return srv.Stats().RequestBytes == 4<<20 })
	c := newClient(t, ClientOptions{Dial: dialTo(to)})
	for range 20 {
		if err := writeBulk(t, c, 1<<20-100); err != nil {
			t.Fatal(err)
		}
	}
	if n := srv.Stats().RequestBytes; n < 4<<20 {
		t.Errorf("%d bytes of requests: those of the first user were cut off", n)
	}
}

// TestUsersDatagrams: the client of a datagram is what Peer says. The answer goes to where
// the datagram came from.
func TestUsersDatagrams(t *testing.T) {
	s := newService()
	cache := NewTestCache()
	_, to := startPackets(t, s, ServerOptions{Replies: cache, Peer: inTurn(1, 2, 1)})
	p := dialPacket(t, to)
	for i, want := range []int{1, 2, 2} {
		p.send(onceMessage(7, AuthSys{UID: 1}, "x"))
		if xid, _, err := p.reply(); xid != 7 || err != nil {
			t.Fatalf("reply to %d, %v", xid, err)
		}
		if n := s.executed(); n != want {
			t.Errorf("after call %d, %d were executed, want %d", i, n, want)
		}
	}
}
