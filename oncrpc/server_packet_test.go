package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc/internal/budget"
	"github.com/nfsbox/nfsbox/xdr"
)

// startPackets serves s in datagrams, and returns the address.
func startPackets(t *testing.T, s *service, o ServerOptions) (*Server, net.Addr) {
	t.Helper()
	noLeaks(t)
	checkPool(t, s)
	later := &xdr.Program{Name: "TEST_V7", Number: testProgram, Version: 7}
	srv, err := NewServer([]Service{s.service(), {Program: later}}, o)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.ServePacket(pc) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			t.Errorf("ServePacket returned %v", err)
		}
		if st := srv.Stats(); st.Buffers != 0 || st.RequestBytes != 0 {
			t.Errorf("server left things behind: %+v", st)
		}
		if _, err := pc.WriteTo(nil, pc.LocalAddr()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the socket is not closed: %v", err)
		}
	})
	return srv, pc.LocalAddr()
}

// packetClient is a socket on which a test writes and reads the messages itself.
type packetClient struct {
	t  *testing.T
	nc net.Conn
}

func dialPacket(t *testing.T, to net.Addr) *packetClient {
	t.Helper()
	return dialPacketFrom(t, "127.0.0.1", to)
}

func dialPacketFrom(t *testing.T, local string, to net.Addr) *packetClient {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(local)}}
	nc, err := d.DialContext(t.Context(), "udp", to.String())
	if err != nil {
		t.Skipf("this host has no address %s to call from: %v", local, err)
	}
	t.Cleanup(func() { _ = nc.Close() }) // nothing hangs on it
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &packetClient{t, nc}
}

func (p *packetClient) send(msg []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(msg); err != nil {
		p.t.Fatal(err)
	}
}

// reply reads the reply in the next datagram.
func (p *packetClient) reply() (uint32, []byte, error) {
	p.t.Helper()
	buf := make([]byte, 64<<10)
	n, err := p.nc.Read(buf)
	if err != nil {
		p.t.Fatal(err)
	}
	d := xdr.NewDecoder(buf[:n])
	xid := d.Uint32()
	_, err = decodeReply(&d)
	return xid, d.Rest(), err
}

// TestPacketAnswers: a message gets the same answer as over a stream, or none.
func TestPacketAnswers(t *testing.T) {
	_, addr := startPackets(t, newService(), ServerOptions{})
	p := dialPacket(t, addr)
	for _, c := range hostileCalls {
		p.send(c.msg)
		if !errors.Is(c.want, errCloses) {
			xid, _, err := p.reply()
			if xid != 1 || !reflect.DeepEqual(err, c.want) {
				t.Errorf("%s: answer to %d is %v, want %v", c.name, xid, err, c.want)
			}
		}
		p.send(message(2, procEcho, str("still there")))
		if xid, got, err := p.reply(); xid != 2 || err != nil || !bytes.Equal(got, str("still there")) {
			t.Fatalf("%s: then the answer to %d is %q, %v", c.name, xid, got, err)
		}
	}
}

// TestPacketSizes: a reply that fits into a datagram is sent, with bulk and without. A
// longer one is an error.
func TestPacketSizes(t *testing.T) {
	srv, addr := startPackets(t, newService(), ServerOptions{})
	p := dialPacket(t, addr)
	for _, n := range []int{0, 100, inlineBulk + 1, 9000, 60000} {
		text := make([]byte, n)
		pattern(text, uint32(n))
		p.send(message(1, procEcho, xdr.AppendOpaque(nil, text)))
		if _, got, err := p.reply(); err != nil || !bytes.Equal(got, xdr.AppendOpaque(nil, text)) {
			t.Errorf("echo of %d: %d bytes, %v", n, len(got), err)
		}
		p.send(message(1, procRead, words(uint32(n), uint32(n))))
		if _, got, err := p.reply(); err != nil || !bytes.Contains(got, text) {
			t.Errorf("read of %d: %d bytes, %v", n, len(got), err)
		}
	}
	for _, n := range []uint32{maxDatagramReply - 100, maxDatagramReply, 1 << 20} {
		p.send(message(1, procRead, words(n, n)))
		_, _, err := p.reply()
		a, tooLong := errors.AsType[*AcceptError](err)
		if tooLong != (n >= maxDatagramReply) || tooLong && a.Stat != SystemErr {
			t.Errorf("read of %d: %v", n, err)
		}
	}
	if st := srv.Stats(); st.Unsent != 0 || st.Failed != 2 {
		t.Errorf("%+v", st)
	}
}

// TestPacketOnce: a datagram that comes twice is executed once, and so is a call
// that comes once in a datagram and once on a connection.
func TestPacketOnce(t *testing.T) {
	s := newService()
	srv, addr := startPackets(t, s, ServerOptions{Replies: NewTestCache()})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(l) }() // ends with Close
	msg := message(7, procOnce, str("x"))
	for range 3 {
		p := dialPacket(t, addr)
		p.send(msg)
		if xid, got, err := p.reply(); xid != 7 || err != nil || !bytes.Equal(got, str("x")) {
			t.Errorf("answer to %d: %q, %v", xid, got, err)
		}
	}
	r := dialRaw(t, l.Addr().String())
	r.send(record(msg))
	if got := r.mustReply(7); !bytes.Equal(got, str("x")) || s.executed() != 1 {
		t.Errorf("%q, executed %d times", got, s.executed())
	}
}

// TestPacketState: each call has a state of its own, unless NewConn refuses it.
func TestPacketState(t *testing.T) {
	var begun atomic.Int32
	var closed atomic.Bool
	srv, addr := startPackets(t, newService(), ServerOptions{
		Replies: NewTestCache(),
		NewConn: func(remote, local net.Addr) (any, error) {
			if remote == nil || local == nil || closed.Load() {
				return nil, errTest
			}
			return begun.Add(1), nil
		},
	})
	p := dialPacket(t, addr)
	for i := range uint32(5) {
		p.send(message(i, procOnce, str("x")))
		if xid, _, err := p.reply(); err != nil || xid != i {
			t.Fatal(err)
		}
		if n := begun.Load(); n != int32(i)+1 {
			t.Errorf("%d states after call %d", n, i)
		}
	}
	closed.Store(true)
	p.send(message(5, procEcho, str("x")))
	waitFor(t, "the refusal", func() bool { return srv.Stats().Refused == 1 })
}

// TestPacketBound: calls above the bound wait in the socket. Shutdown lets those that were
// read finish, and answers them.
func TestPacketBound(t *testing.T) {
	s := newService()
	srv, addr := startPackets(t, s, ServerOptions{})
	var all []*packetClient
	for i := range uint32(maxDatagramCalls + 10) {
		p := dialPacketFrom(t, fmt.Sprint("127.0.1.", 1+i), addr)
		p.send(message(i, procWait, nil))
		all = append(all, p)
	}
	for range maxDatagramCalls {
		s.begun(t)
	}
	if n := srv.Stats().Calls; n != maxDatagramCalls {
		t.Errorf("%d calls were read", n)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(t.Context()) }()
	waitFor(t, "the shutdown", srv.closing)
	close(s.gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	for i, p := range all[:maxDatagramCalls] {
		if xid, _, err := p.reply(); xid != uint32(i) || err != nil {
			t.Fatalf("reply %d to %d: %v", xid, i, err)
		}
	}
	if n := srv.Stats().Calls; n != maxDatagramCalls {
		t.Errorf("%d calls were read", n)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.ServePacket(pc); !errors.Is(err, ErrServerClosed) {
		t.Errorf("after Shutdown: %v", err)
	}
}

// TestPacketShares: clients that are not admitted, however many, leave room for one that is.
// So do admitted clients that take what they can, one after the other.
func TestPacketShares(t *testing.T) {
	const each = maxDatagramCalls/2 + 1
	for _, x := range []struct {
		what   string
		admits bool
		taken  []uint64 // by all up to this one
	}{
		{"not admitted", false, []uint64{32, 32, 32, 32}},
		{"admitted", true, []uint64{32, 48, 56, 60}},
	} {
		t.Run(x.what, func(t *testing.T) {
			s := newService()
			srv, addr := startPackets(t, s, ServerOptions{
				NewConn: func(remote, _ net.Addr) (any, error) { return remote, nil },
				Admit:   func(state any) bool { return x.admits || ShareOf(state.(net.Addr)) == "127.0.0.1" },
			})
			for n, taken := range x.taken {
				greedy := dialPacketFrom(t, fmt.Sprint("127.0.0.", 2+n), addr)
				for i := range uint32(each) {
					greedy.send(message(uint32(n)<<8|i, procWait, nil))
				}
				waitFor(t, "what is too much", func() bool { return srv.Stats().Dropped == uint64(each*(n+1))-taken })
			}
			p := dialPacket(t, addr)
			p.send(message(1, procEcho, str("hello")))
			if xid, _, err := p.reply(); xid != 1 || err != nil {
				t.Errorf("reply to %d, %v", xid, err)
			}
			close(s.gate)
		})
	}
}

// TestPacketFails: ServePacket ends when the test closes its socket. It goes on after reads
// that fail for a while.
func TestPacketFails(t *testing.T) {
	srv, err := NewServer([]Service{newService().service()}, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := pc.LocalAddr()
	sick := &sickPackets{PacketConn: pc}
	sick.left.Store(2)
	done := make(chan error, 1)
	go func() { done <- srv.ServePacket(sick) }()
	p := dialPacket(t, addr)
	p.send(message(1, procNull, nil))
	if xid, _, err := p.reply(); xid != 1 || err != nil {
		t.Error(err)
	}
	if err := pc.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) || errors.Is(err, ErrServerClosed) {
		t.Errorf("ServePacket returned %v", err)
	}
	if err := srv.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// sickPackets fails a few reads.
type sickPackets struct {
	net.PacketConn
	left atomic.Int32
}

func (s *sickPackets) ReadFrom(p []byte) (int, net.Addr, error) {
	if s.left.Add(-1) >= 0 {
		return 0, nil, errTest
	}
	return s.PacketConn.ReadFrom(p)
}

// FuzzPacket sends datagrams with any content: the server lives, and answers a
// call that follows.
func FuzzPacket(f *testing.F) {
	svc := newService().service()
	svc.Handlers[procWait] = nil
	srv, err := NewServer([]Service{svc}, ServerOptions{Replies: NewTestCache()})
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range hostileCalls {
		f.Add(c.msg)
	}
	p := &packetConn{s: srv, pc: noPackets{}, stop: make(chan struct{}), running: make(chan struct{}, 1), shares: make(map[string]int)}
	f.Fuzz(func(t *testing.T, msg []byte) {
		p.running <- struct{}{}
		p.take(msg, addr("192.0.2.1", 1))
		p.running <- struct{}{} // when the call is over
		<-p.running
		if st := srv.Stats(); st.Buffers != 0 || st.RequestBytes != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

// noPackets drops what is written to it.
type noPackets struct{ net.PacketConn }

func (noPackets) LocalAddr() net.Addr                             { return addr("192.0.2.2", 1) }
func (noPackets) SetWriteDeadline(time.Time) error                { return nil }
func (noPackets) WriteTo(p []byte, _ net.Addr) (n int, err error) { return len(p), nil }

// TestPacketBesideStreams: what a client's connections take of the budget does
// not stop the datagrams of others, nor its own.
func TestPacketBesideStreams(t *testing.T) {
	s := newService()
	srv, to := startPackets(t, s, ServerOptions{MaxRequestBytes: 1})
	d, a := srv.budget.Join("127.0.0.1"), &budget.Allowance{}
	if _, ok := d.Take(a, budget.Room(DefaultMaxRecord), nil); !ok {
		t.Fatal("nothing was given")
	}
	defer d.Leave()
	defer a.Put()
	p := dialPacket(t, to)
	p.send(message(1, procEcho, str(string(make([]byte, 2*smallRecord)))))
	if xid, _, err := p.reply(); xid != 1 || err != nil {
		t.Errorf("reply to %d, %v", xid, err)
	}
}
