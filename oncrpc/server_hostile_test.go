package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// head is the head of a call, field by field, up to the arguments.
func head(xid, kind, rpc, prog, vers, number uint32, credLen, verfLen uint32) []byte {
	b := words(xid, kind, rpc, prog, vers, number, 0, credLen)
	b = append(b, make([]byte, int(credLen)+xdr.Pad(int(credLen)))...)
	b = append(b, words(0, verfLen)...)
	return append(b, make([]byte, int(verfLen)+xdr.Pad(int(verfLen)))...)
}

var errCloses = errors.New("the connection is closed")

// hostileCalls are messages, and what a server says to them.
var hostileCalls = []struct {
	name string
	msg  []byte
	want error // nil: success
}{
	{"null", message(1, procNull, nil), nil},
	{"null with arguments", message(1, procNull, str("ignored")), nil},
	{"longest credential", head(1, 0, 2, testProgram, testVersion, 0, 400, 400), nil},
	{"long credential", head(1, 0, 2, testProgram, testVersion, 0, 401, 0), &DeniedError{Stat: AuthRejected, Auth: AuthBadCred}},
	{"long verifier", head(1, 0, 2, testProgram, testVersion, 0, 0, 404), &DeniedError{Stat: AuthRejected, Auth: AuthBadVerf}},
	{"endless credential", words(1, 0, 2, testProgram, testVersion, 0, 0, 0xffffffff), &DeniedError{Stat: AuthRejected, Auth: AuthBadCred}},
	{"cut credential", words(1, 0, 2, testProgram, testVersion, 0, 0, 400, 1), errCloses},
	{"no verifier", words(1, 0, 2, testProgram, testVersion, 0, 0, 0), errCloses},
	{"RPC version 1", head(1, 0, 1, testProgram, testVersion, 0, 0, 0), &DeniedError{Stat: RPCMismatch, Low: 2, High: 2}},
	{"RPC version 3, nothing else", words(1, 0, 3), &DeniedError{Stat: RPCMismatch, Low: 2, High: 2}},
	{"other program", head(1, 0, 2, 100003, testVersion, 0, 0, 0), &AcceptError{Stat: ProgUnavail}},
	{"older version", head(1, 0, 2, testProgram, 2, 0, 0, 0), &AcceptError{Stat: ProgMismatch, Low: 3, High: 7}},
	{"version between", head(1, 0, 2, testProgram, 5, 0, 0, 0), &AcceptError{Stat: ProgMismatch, Low: 3, High: 7}},
	{"null of another version", head(1, 0, 2, testProgram, 7, 0, 0, 0), nil},
	{"no such procedure", message(1, 99, nil), &AcceptError{Stat: ProcUnavail}},
	{"highest procedure", message(1, 0xffffffff, nil), &AcceptError{Stat: ProcUnavail}},
	{"procedure without a handler", message(1, procHole, nil), &AcceptError{Stat: ProcUnavail}},
	{"no arguments", message(1, procEcho, nil), &AcceptError{Stat: GarbageArgs}},
	{"length beyond the record", message(1, procEcho, words(1000, 1)), &AcceptError{Stat: GarbageArgs}},
	{"length beyond the type", message(1, procEcho, words(0xffffffff, 1)), &AcceptError{Stat: GarbageArgs}},
	{"trailing bytes", message(1, procEcho, append(str("abc"), 0, 0, 0, 0)), &AcceptError{Stat: GarbageArgs}},
	{"handler refuses", message(1, procFail, str("garbage")), &AcceptError{Stat: GarbageArgs}},
	{"handler runs short", message(1, procFail, str("short")), &AcceptError{Stat: GarbageArgs}},
	{"handler fails", message(1, procFail, str("")), &AcceptError{Stat: SystemErr}},
	{"handler panics", message(1, procFail, str("panic")), &AcceptError{Stat: SystemErr}},
	{"handler exits", message(1, procFail, str("exit")), &AcceptError{Stat: SystemErr}},
	{"handler fails after its reply", message(1, procFail, str("late")), &AcceptError{Stat: SystemErr}},
	{"handler replies twice", message(1, procFail, str("twice")), &AcceptError{Stat: SystemErr}},
	{"handler's reply does not encode", message(1, procFail, str("bad")), &AcceptError{Stat: GarbageArgs}},
	{"handler denies", message(1, procFail, str("auth")), &DeniedError{Stat: AuthRejected, Auth: AuthTooWeak}},
	{"TLS probe", append(words(1, 0, 2, testProgram, testVersion, 0, AuthTLS, 0), words(0, 0)...), &DeniedError{Stat: AuthRejected, Auth: AuthRejectedCred}},
	{"a reply", words(1, 1, 0, 0, 0, 0), errCloses},
	{"neither call nor reply", words(1, 2, 2, testProgram, testVersion, 0, 0, 0, 0, 0), errCloses},
	{"nothing", nil, errCloses},
	{"three bytes", []byte{0, 0, 0}, errCloses},
	{"text", []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"), errCloses},
}

// TestServerAnswers sends each message in several cuts, over TCP and over a
// pipe, and behind each that is answered a call that must succeed.
func TestServerAnswers(t *testing.T) {
	s := newService()
	later := &xdr.Program{Name: "TEST_V7", Number: testProgram, Version: 7}
	srv, err := NewServer([]Service{s.service(), {Program: later}}, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	noLeaks(t)
	pipes := newPipeListener()
	for _, l := range []net.Listener{l, pipes} {
		go func() { _ = srv.Serve(l) }() // what it returns is another test's
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if n := srv.Stats().Buffers; n != 0 {
			t.Errorf("%d buffers lost", n)
		}
	})
	networks := map[string]func() (net.Conn, error){
		"tcp":  func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) },
		"pipe": pipes.dial,
	}
	for network, dial := range networks {
		for _, c := range hostileCalls {
			cuts := map[string][]byte{"one fragment": record(c.msg), "fragments of 3": record(pieces(c.msg, 3)...)}
			for cut, rec := range cuts {
				t.Run(network+"/"+c.name+"/"+cut, func(t *testing.T) {
					nc, err := dial()
					if err != nil {
						t.Fatal(err)
					}
					checkAnswer(t, newRaw(t, nc), rec, c.want)
				})
			}
		}
	}
}

func checkAnswer(t *testing.T, r *rawConn, rec []byte, want error) {
	if errors.Is(want, errCloses) {
		_, _ = r.nc.Write(rec) // the server may close half-way
		r.mustClose()
		return
	}
	r.send(rec)
	xid, _, err := r.reply()
	if xid != 1 || !reflect.DeepEqual(err, want) {
		t.Fatalf("answer to %d is %v, want %v", xid, err, want)
	}
	r.send(record(message(2, procEcho, str("still there"))))
	if got := r.mustReply(2); !bytes.Equal(got, str("still there")) {
		t.Fatalf("echo is %q", got)
	}
}

// TestServerBadRecords sends bytes that are no records.
func TestServerBadRecords(t *testing.T) {
	const limit = 100 << 10
	_, addr := startServer(t, newService(), ServerOptions{MaxRecord: limit})
	echo := message(1, procEcho, xdr.AppendOpaque(nil, make([]byte, limit-44)))
	empties := func(n int) []byte { return bytes.Repeat(words(0), n) }
	for _, c := range []struct {
		name     string
		bytes    []byte
		answered bool
	}{
		{"longest record", record(message(1, procEcho, xdr.AppendOpaque(nil, make([]byte, limit-44)))), true},
		{"record a word too long", record(message(1, procEcho, xdr.AppendOpaque(nil, make([]byte, limit-40)))), false},
		{"2 GiB announced", words(0xffffffff), false},
		{"2 GiB announced in two", slices.Concat(words(100), make([]byte, 100), words(0x7fffffff)), false},
		{"fragments that add up", append(append(words(limit-10), make([]byte, limit-10)...), words(lastFragment|11)...), false},
		{"one-byte fragments", record(pieces(echo, 1)...), true},
		{"one-byte fragments, too long", record(pieces(append(echo, 0), 1)...), false},
		{"empty fragments among others", record(strewn(pieces(echo, 50), 2)...), true},
		{"empty fragments", append(empties(maxEmptyFragments), record(message(1, procNull, nil))...), true},
		{"empty fragments, too many", append(empties(maxEmptyFragments+1), record(message(1, procNull, nil))...), false},
		{"flood of empty fragments", empties(100000), false},
		{"flood of empty records", bytes.Repeat(words(lastFragment), 100000), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := dialRaw(t, addr)
			_, err := r.nc.Write(c.bytes)
			if !c.answered {
				r.mustClose()
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if xid, _, err := r.reply(); xid != 1 || gone(err) {
				t.Fatalf("reply to %d: %v", xid, err)
			}
		})
	}
}

// TestServerTruncation ends the stream after every byte of a call, and cuts the
// record after every byte.
func TestServerTruncation(t *testing.T) {
	_, addr := startServer(t, newService(), ServerOptions{})
	msg := message(1, procEcho, str("some text to be sent back"))
	whole := record(pieces(msg, 20)...)
	for n := range whole {
		r := dialRaw(t, addr)
		r.send(whole[:n])
		if err := r.nc.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		r.mustClose()
	}
	for n := range msg {
		r := dialRaw(t, addr)
		r.send(record(msg[:n]))
		_, _, err := r.reply()
		if a, ok := errors.AsType[*AcceptError](err); !gone(err) && (!ok || a.Stat != GarbageArgs) {
			t.Fatalf("record cut after %d bytes: %v", n, err)
		}
	}
}

// TestServerHalfOpen has hundreds of clients that begin a request and do not go on, or send
// a byte now and then. Another client is served meanwhile.
func TestServerHalfOpen(t *testing.T) {
	const clients, heapLimit = 500, 48 << 20
	_, srv, c := pair(t, ServerOptions{}, ClientOptions{})
	dial := c.o.Dial
	before := heap()
	var conns []net.Conn
	for i := range clients {
		nc, err := dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }() // nothing hangs on it
		conns = append(conns, nc)
		begun := append(words(lastFragment|1<<20), message(1, procWrite, words(0, 1<<20-60))...)
		if _, err := nc.Write(begun[:[]int{0, 2, 4, 10, len(begun)}[i%5]]); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		for i := 4; i < clients; i += 5 {
			if _, err := conns[i].Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if err := callEcho(t.Context(), c, procEcho, "prompt"); err != nil {
			t.Fatal(err)
		}
		if err := writeBulk(t, c, 1<<20-100); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > patience/4 {
			t.Fatalf("another client waited %v", d)
		}
	}
	if grown := heap() - before; grown > heapLimit {
		t.Errorf("heap has grown by %d bytes", grown)
	}
	if n := srv.Stats().Conns; n != clients+1 {
		t.Errorf("%d connections", n)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestServerTimeouts checks which connections are closed, and when.
func TestServerTimeouts(t *testing.T) {
	type step struct {
		after time.Duration
		send  []byte
	}
	const announced = lastFragment | 5000
	for _, c := range []struct {
		name  string
		steps []step
		life  time.Duration
	}{
		{"silent", nil, time.Minute},
		{"talks, then silent", []step{{50 * time.Second, record(message(1, procNull, nil))}}, 50*time.Second + time.Minute},
		{"half a mark", []step{{30 * time.Second, []byte{0x80, 0}}}, 40 * time.Second},
		{"half a record", []step{{time.Second, words(announced, 1, 2, 3)}}, 11 * time.Second},
		{"trickles, and grows", []step{{0, words(lastFragment | 1<<20)}, {9 * time.Second, make([]byte, 5000)}}, 10 * time.Second},
		{"the least rate, and then nothing", []step{{0, words(lastFragment | 1<<20)}, {time.Second, make([]byte, 3*leastRate)}}, 13 * time.Second},
		{"trickles", []step{{0, words(announced)}, {9 * time.Second, []byte{0}}, {time.Second / 2, []byte{0}}}, 10 * time.Second},
		{"waits for its reply", []step{{0, record(message(1, procWait, nil))}}, 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				_, l, stop := startPipeServer(t, s, ServerOptions{IdleTimeout: time.Minute, HeadTimeout: 10 * time.Second})
				defer stop()
				nc, err := l.dial()
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = nc.Close() }() // the server has, by then
				time.AfterFunc(9*time.Minute, func() { close(s.gate) })
				start := time.Now()
				go func() {
					for _, step := range c.steps {
						time.Sleep(step.after)
						_, _ = nc.Write(step.send) // the test is about when it ends
					}
				}()
				for buf := make([]byte, 100); err == nil; _, err = nc.Read(buf) {
				}
				if life := time.Since(start); life != c.life {
					t.Errorf("closed after %v, want %v", life, c.life)
				}
			})
		})
	}
}

// TestServerBudget has more requests half received than the budget can hold.
// None may be lost, and small calls do not wait.
func TestServerBudget(t *testing.T) {
	const size, senders = 1 << 20, 12
	o := ServerOptions{MaxRequestBytes: 3 * size}
	srv, addr := startServer(t, newService(), o)
	rec := record(message(7, procWrite, append(words(0, size), make([]byte, size+4)...)))
	var raws []*rawConn
	sent, rest := make(chan error, senders), make(chan struct{})
	for range senders {
		r := dialRaw(t, addr)
		raws = append(raws, r)
		go func() {
			_, err := r.nc.Write(rec[:len(rec)*3/4])
			<-rest
			if err == nil {
				_, err = r.nc.Write(rec[len(rec)*3/4:])
			}
			sent <- err
		}()
	}
	c := newClient(t, ClientOptions{Dial: dialTo(addr)})
	for range 50 {
		if err := callEcho(t.Context(), c, procEcho, "small"); err != nil {
			t.Fatal(err)
		}
		if n := srv.Stats().RequestBytes; n > o.MaxRequestBytes+int64(DefaultMaxRecord) {
			t.Fatalf("%d bytes of requests", n)
		}
	}
	close(rest)
	for range senders {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range raws {
		r.mustReply(7)
	}
}

// TestServerNotTaking has a client that makes calls with long replies and reads nothing.
func TestServerNotTaking(t *testing.T) {
	s, srv, c := pair(t, ServerOptions{WriteTimeout: 200 * time.Millisecond}, ClientOptions{})
	nc, err := c.o.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, nc)
	for i := range uint32(64) {
		r.send(record(message(i, procRead, words(i, 1<<20))))
	}
	waitFor(t, "connection closed", func() bool { return srv.Stats().Conns == 0 })
	waitFor(t, "bulk given back", func() bool { return s.pool.Outstanding() == 0 })
	if err := callEcho(t.Context(), c, procEcho, "well"); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until cond holds.
func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// TestServerMaxConns fills the server with connections: for a new one it closes an idle one,
// but none with calls under way.
func TestServerMaxConns(t *testing.T) {
	s := newService()
	srv, addr := startServer(t, s, ServerOptions{MaxConns: 4})
	var busy []*rawConn
	for i := range uint32(3) {
		r := dialRaw(t, addr)
		r.send(record(message(i, procWait, nil)))
		s.begun(t)
		busy = append(busy, r)
	}
	silent := dialRaw(t, addr)
	silent.send(record(message(9, procNull, nil)))
	silent.mustReply(9)
	waitFor(t, "silence", func() bool { return srv.silent() == 1 })
	fourth := dialRaw(t, addr)
	fourth.send(record(message(10, procWait, nil)))
	s.begun(t)
	silent.mustClose()
	dialRaw(t, addr).mustClose()
	close(s.gate)
	for i, r := range append(busy, fourth) {
		if xid, _, err := r.reply(); err != nil || (i < 3 && xid != uint32(i)) {
			t.Errorf("reply to %d: %v", xid, err)
		}
	}
	if st := srv.Stats(); st.Evicted != 1 || st.Refused != 1 {
		t.Errorf("%+v", st)
	}
}

// TestServerShares: the connections of one client are bounded, and so are those of all
// clients together that are not admitted. Beyond the bound one of their own is closed, and
// others still get in.
func TestServerShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, share = 4 * minShareConns, (4*minShareConns - 1) / 2 // what the first leaves, divided
		srv, err := NewServer(nil, ServerOptions{MaxConns: most, Admit: func(state any) bool { return state.(bool) },
			NewConn: func(remote, _ net.Addr) (any, error) { return ShareOf(remote) != "192.0.2.9", nil }})
		if err != nil {
			t.Fatal(err)
		}
		come := func(ip string) net.Conn {
			near, far := net.Pipe()
			srv.accept(connFrom{far, addr(ip, 1)})
			synctest.Wait()
			time.Sleep(time.Millisecond)
			return near
		}
		count := func(ip string) (n int) {
			for _, c := range srv.Conns() {
				if ShareOf(c.Remote) == ip {
					n++
				}
			}
			return n
		}
		first := come("192.0.2.1")
		for range 2 * most {
			come("192.0.2.9")
			come("192.0.2.2")
		}
		// Those that are not admitted have no more than the others.
		if a, b := count("192.0.2.2"), count("192.0.2.9"); a != share || b != share {
			t.Errorf("%d connections of a client, %d of one that is not admitted, want %d each", a, b, share)
		}
		for i := range 2 * most {
			come(fmt.Sprintf("198.51.100.%d", i%100))
		}
		if n := count("192.0.2.9"); n != 0 || srv.Stats().Conns != most {
			t.Errorf("%d connections of those who are not admitted beside %d of others", n, srv.Stats().Conns)
		}
		if count("192.0.2.1") != 1 || first.SetDeadline(time.Now()) != nil {
			t.Error("one who has a single connection had to make room")
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if len(srv.shares) != 0 || srv.strangers != 0 {
			t.Errorf("left over: %v, %d", srv.shares, srv.strangers)
		}
	})
}

// connFrom is a connection from an address.
type connFrom struct {
	net.Conn
	from net.Addr
}

func (c connFrom) RemoteAddr() net.Addr { return c.from }

// silent is how many connections may be closed for a new one.
func (s *Server) silent() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sc := range s.conns {
		if _, ok := sc.silentSince(); ok {
			n++
		}
	}
	return n
}

// TestServerCallsBound: a connection with MaxCallsPerConn calls is not read, and others are.
func TestServerCallsBound(t *testing.T) {
	s, srv, c := pair(t, ServerOptions{MaxCallsPerConn: 3}, ClientOptions{})
	nc, err := c.o.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, nc)
	for i := range uint32(10) {
		r.send(record(message(i, procWait, nil)))
	}
	for range 3 {
		s.begun(t)
	}
	if err := callEcho(t.Context(), c, procEcho, "others"); err != nil {
		t.Fatal(err)
	}
	if n := srv.Stats().Calls; n != 4 {
		t.Errorf("%d calls were read, want 3 and another's", n)
	}
	close(s.gate)
	seen := make(map[uint32]bool)
	for range 10 {
		xid, _, err := r.reply()
		if err != nil {
			t.Fatal(err)
		}
		seen[xid] = true
	}
	if len(seen) != 10 {
		t.Errorf("%d calls were answered", len(seen))
	}
}

// TestServerDrop: a call whose handler returns ErrDrop gets no reply.
func TestServerDrop(t *testing.T) {
	srv, addr := startServer(t, newService(), ServerOptions{MaxCallsPerConn: 2})
	r := dialRaw(t, addr)
	for i := range uint32(10) {
		r.send(record(message(i, procFail, str("drop"))))
	}
	r.send(record(message(99, procNull, nil)))
	r.mustReply(99)
	waitFor(t, "calls dropped", func() bool { return srv.Stats().Dropped == 10 })
}

// TestServerConnState: calls have the state of their connection, and one that NewConn
// refuses is closed.
func TestServerConnState(t *testing.T) {
	admit := true
	s := newService()
	svc := s.service()
	states := make(chan any, 10)
	svc.Handlers[procEcho] = func(_ context.Context, c *Call) error {
		states <- c.State
		return nil
	}
	srv, err := NewServer([]Service{svc}, ServerOptions{
		NewConn: func(remote, local net.Addr) (any, error) {
			if !admit {
				return nil, errTest
			}
			return fmt.Sprint(remote), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // again, if all went well
	l := newPipeListener()
	go func() { _ = srv.Serve(l) }() // ends with Close
	nc, err := l.dial()
	if err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, nc)
	r.send(record(message(1, procEcho, nil)))
	r.mustReply(1)
	if st := <-states; st != "pipe" {
		t.Errorf("state is %v", st)
	}
	if err := nc.Close(); err != nil {
		t.Error(err)
	}
	admit = false
	if nc, err = l.dial(); err != nil {
		t.Fatal(err)
	}
	newRaw(t, nc).mustClose()
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
}

// TestNewServer refuses services that cannot be served.
func TestNewServer(t *testing.T) {
	svc := newService().service()
	small := Service{Program: &xdr.Program{Name: "SMALL", Number: 1, Version: 1}, Handlers: make([]Handler, 1)}
	for _, c := range []struct {
		name     string
		services []Service
		want     string
	}{
		{"twice", []Service{svc, svc}, "twice"},
		{"more handlers than procedures", []Service{small}, "0 procedures and 1 handlers"},
		{"no program", []Service{{}}, "no program"},
	} {
		if _, err := NewServer(c.services, ServerOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
