package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// TestCache is the duplicate request cache of package replycache. That package imports this
// one: cache_test.go, in a package of its own, sets NewTestCache.
type TestCache interface {
	Replies
	Save(w io.Writer) error
	Load(r io.Reader) error
}

// NewTestCache returns an empty cache of the default size.
var NewTestCache func() TestCache

// maxRemembered is the longest reply that it remembers.
const maxRemembered = 64 << 10

// nowhere is a route that drops all replies.
type nowhere struct{ ctx context.Context }

func (n *nowhere) context() context.Context { return n.ctx }
func (n *nowhere) enqueue(a answered)       { a.drop() }
func (n *nowhere) flush()                   {}
func (n *nowhere) Gone() bool               { return false }
func (n *nowhere) Unanswered()              {}

func addr(ip string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }

// TestPassOn: a call that is passed on has given its buffer back.
func TestPassOn(t *testing.T) {
	s := &Server{}
	c := &Call{s: s, counters: new(procServerCounters), rec: s.pool.Get(100)}
	(*Claim)(c).PassOn()
	if n := s.pool.Outstanding(); n != 0 {
		t.Errorf("%d buffers are lent", n)
	}
}

// executed is how often ONCE was executed.
func (s *service) executed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.once
}

// dialFrom is dialRaw with an address of our own.
func dialFrom(t *testing.T, ip, to string) *rawConn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	nc, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Skipf("no second address on loopback: %v", err)
	}
	return newRaw(t, nc)
}

// onceMessage is a call of ONCE with an AUTH_SYS credential.
func onceMessage(xid uint32, cred AuthSys, text string) []byte {
	auth, err := cred.Auth()
	if err != nil {
		panic(err)
	}
	p := &xdr.Proc{Program: testProgram, Version: testVersion, Number: procOnce}
	return append(appendCall(nil, xid, p, &auth), str(text)...)
}

// TestOnceReplay sends calls again in various ways. The same call is executed once, on
// whatever connection it comes. Another one is executed.
func TestOnceReplay(t *testing.T) {
	s := newService()
	cache := NewTestCache()
	_, addr := startServer(t, s, ServerOptions{Replies: cache})
	alice, bob := AuthSys{Stamp: 1, UID: 1}, AuthSys{Stamp: 1, UID: 2}
	first := dialRaw(t, addr)
	first.send(record(onceMessage(7, alice, "x")))
	want := first.mustReply(7)
	other := alice
	other.Stamp = 99
	for _, c := range []struct {
		name string
		r    *rawConn
		msg  []byte
		anew bool
	}{
		{"the same", first, onceMessage(7, alice, "x"), false},
		{"another connection", dialRaw(t, addr), onceMessage(7, alice, "x"), false},
		{"another stamp", first, onceMessage(7, other, "x"), false},
		{"another number", first, onceMessage(8, alice, "x"), true},
		{"other arguments", first, onceMessage(7, alice, "y"), true},
		{"another user", first, onceMessage(7, bob, "x"), true},
		{"another client", dialFrom(t, "127.0.0.2", addr), onceMessage(7, alice, "x"), true},
		{"still the same", first, onceMessage(7, alice, "x"), false},
	} {
		before, hits := s.executed(), cache.Stats().Hits
		c.r.send(record(c.msg))
		xid, got, err := c.r.reply()
		if err != nil || !c.anew && (!bytes.Equal(got, want) || xid != 7) {
			t.Errorf("%s: reply to %d is %q, %v", c.name, xid, got, err)
		}
		if anew := s.executed() > before; anew != c.anew || anew == (cache.Stats().Hits > hits) {
			t.Errorf("%s: executed %v", c.name, anew)
		}
	}
	first.send(record(message(1, procEcho, str("x"))))
	first.mustReply(1)
	if n := cache.Stats().Replies; n != 5 {
		t.Errorf("%d replies are remembered; ECHO's is of no use", n)
	}
}

// TestOnceForgotten: some answers are not remembered, and the call is executed again.
func TestOnceForgotten(t *testing.T) {
	s := newService()
	svc := s.service()
	var times int
	long := make([]byte, maxRemembered)
	svc.Handlers[procOnce] = func(_ context.Context, c *Call) error {
		times++
		switch how := string(c.Args.Opaque("how", 64)); how {
		case "forget":
			c.Forget()
			return c.Reply(xdr.Void{})
		case "long":
			return c.Reply(&opaque{b: long})
		case "bulk":
			return c.ReplyBulk(&readRes{Data: long[:inlineBulk+1]}, nil)
		}
		return c.Reply(xdr.Void{})
	}
	cache := NewTestCache()
	srv, err := NewServer([]Service{svc}, ServerOptions{Replies: cache})
	if err != nil {
		t.Fatal(err)
	}
	l := newPipeListener()
	go func() { _ = srv.Serve(l) }() // ends with Close
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := l.dial()
	if err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, nc)
	for i, c := range []struct {
		proc uint32
		how  string
		runs int
	}{
		{procOnce, "", 1}, {procOnce, "forget", 2}, {procOnce, "long", 2}, {procOnce, "bulk", 1},
	} {
		times = 0
		var replies [2][]byte
		for k := range replies {
			r.send(record(message(uint32(i), c.proc, str(c.how))))
			replies[k] = r.mustReply(uint32(i))
		}
		if times != c.runs || !bytes.Equal(replies[0], replies[1]) {
			t.Errorf("%q: executed %d times, want %d; %d and %d bytes", c.how, times, c.runs, len(replies[0]), len(replies[1]))
		}
	}
	for _, how := range []string{"", "panic", "exit", "auth", "garbage", "late", "twice"} {
		before := cache.Stats()
		for range 2 {
			r.send(record(message(99, procFail, str(how))))
			if _, _, err := r.reply(); !isAnswer(err) {
				t.Errorf("%q: %v", how, err)
			}
		}
		if st := cache.Stats(); st.Forgotten != before.Forgotten+2 || st.Replies != before.Replies || st.UnderWay != 0 {
			t.Errorf("%q: %+v", how, st)
		}
	}
	if st := cache.Stats(); st.TooLong != 2 {
		t.Errorf("%+v", st)
	}
}

// TestOnceJoin has a call under way whose connection is lost, and retransmissions of it. The
// call is finished. The newest retransmission alone gets the answer.
func TestOnceJoin(t *testing.T) {
	s := newService()
	svc := s.service()
	var times atomic.Int32
	var ended atomic.Bool
	svc.Handlers[procOnce] = func(ctx context.Context, c *Call) error {
		times.Add(1)
		s.seen <- struct{}{}
		select {
		case <-s.gate:
		case <-ctx.Done():
			ended.Store(true)
		}
		return c.Reply(&opaque{b: []byte("done")})
	}
	noLeaks(t)
	cache := NewTestCache()
	srv, err := NewServer([]Service{svc}, ServerOptions{Replies: cache})
	if err != nil {
		t.Fatal(err)
	}
	l := newPipeListener()
	go func() { _ = srv.Serve(l) }() // ends with Close
	dial := func() *rawConn {
		nc, err := l.dial()
		if err != nil {
			t.Fatal(err)
		}
		return newRaw(t, nc)
	}
	ask := record(message(7, procOnce, nil))
	joined := func(n uint64) {
		t.Helper()
		waitFor(t, "the joining", func() bool { return cache.Stats().Joined == n })
	}
	first, second := dial(), dial()
	second.send(record(message(1, procNull, nil))) // the server knows both, in this order
	second.mustReply(1)
	first.send(ask)
	s.begun(t)
	first.send(ask) // again on its own connection
	joined(1)
	second.send(ask)
	joined(2)
	first.send(ask) // the older connection asks last, and yet
	joined(3)
	first.send(record(message(2, procNull, nil)))
	first.mustReply(2)
	if err := first.nc.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection's end", func() bool { return len(srv.failed()) == 1 })
	third := dial()
	third.send(ask)
	joined(4)
	s.gate <- struct{}{}
	if got := third.mustReply(7); !bytes.Equal(got, str("done")) {
		t.Errorf("the answer is %q", got)
	}
	second.send(record(message(3, procNull, nil)))
	second.mustReply(3) // and no answer to 7 before it
	second.send(ask)
	second.mustReply(7) // from memory
	if times.Load() != 1 || ended.Load() {
		t.Errorf("executed %d times; its context ended: %v", times.Load(), ended.Load())
	}
	// Close ends what is under way, on whatever connection.
	third.send(record(message(8, procOnce, nil)))
	s.begun(t)
	second.send(record(message(8, procOnce, nil)))
	waitFor(t, "the joining", func() bool { return cache.Stats().Joined >= 5 })
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if st := srv.Stats(); !ended.Load() || st.Buffers != 0 || st.Conns != 0 {
		t.Errorf("after Close: context ended %v, %+v", ended.Load(), st)
	}
	if st := cache.Stats(); st.UnderWay != 0 || st.Clients != 1 {
		t.Errorf("after Close: %+v", st)
	}
}

// failed are the connections that have ended, and still have a call under way.
func (s *Server) failed() (all []*serverConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sc := range s.conns {
		if sc.over() {
			all = append(all, sc)
		}
	}
	return all
}

// TestOnceLate: a call whose connection is lost before its handler begins is not
// executed.
func TestOnceLate(t *testing.T) {
	s := newService()
	srv, err := NewServer([]Service{s.service()}, ServerOptions{Replies: NewTestCache()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	to := &nowhere{ctx}
	for _, lost := range []bool{false, true} {
		if lost {
			cancel()
		}
		c := srv.newCall(to)
		c.rec = srv.pool.Get(0)
		c.rec.B = append(c.rec.B, message(1, procOnce, str(fmt.Sprint(lost)))...)
		if _, err := c.decode(); err != nil {
			t.Fatal(err)
		}
		c.once.client = srv.o.Replies.Client(nil)
		c.run()
	}
	if st := srv.Stats(); s.executed() != 1 || st.Late != 1 || st.Buffers != 0 {
		t.Errorf("executed %d times; %+v", s.executed(), st)
	}
	if p := srv.Procs(); len(p) != 1 || p[0].Calls != 2 || p[0].Latency.Count != 1 {
		t.Errorf("%+v", p)
	}
	cancel()
}

// TestOnceRestart hands the cache to another server: in the process, and by a file.
func TestOnceRestart(t *testing.T) {
	s := newService()
	cache := NewTestCache()
	ask := func(cache TestCache) []byte {
		t.Helper()
		srv, addr := startServer(t, s, ServerOptions{Replies: cache})
		r := dialRaw(t, addr)
		r.send(record(message(7, procOnce, str("x"))))
		reply := r.mustReply(7)
		if err := r.nc.Close(); err != nil {
			t.Error(err)
		}
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		return reply
	}
	want := ask(cache)
	if got := ask(cache); !bytes.Equal(got, want) || s.executed() != 1 {
		t.Errorf("handed on in the process: %q, executed %d times", got, s.executed())
	}
	var file bytes.Buffer
	if err := cache.Save(&file); err != nil {
		t.Fatal(err)
	}
	loaded := NewTestCache()
	if err := loaded.Load(&file); err != nil {
		t.Fatal(err)
	}
	if got := ask(loaded); !bytes.Equal(got, want) || s.executed() != 1 {
		t.Errorf("handed on in a file: %q, executed %d times", got, s.executed())
	}
	if ask(NewTestCache()); s.executed() != 2 {
		t.Error("a cache of its own knows another's calls")
	}
}

// TestOnceStorm has a client that loses its connections again and again, and sends its calls
// again. Each call is executed once and answered.
func TestOnceStorm(t *testing.T) {
	s := newService()
	cache := NewTestCache()
	_, addr := startServer(t, s, ServerOptions{Replies: cache})
	const clients, calls = 8, 150
	var wg sync.WaitGroup
	for g := range uint32(clients) {
		wg.Go(func() {
			for i := range uint32(calls) {
				xid := g<<16 | i
				if err := stormOnce(addr, xid, int(i%3)); err != nil {
					t.Errorf("call %#x: %v", xid, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := s.executed(); n != clients*calls {
		t.Errorf("%d calls were executed %d times", clients*calls, n)
	}
	if st := cache.Stats(); st.Replies != clients*calls || st.UnderWay != 0 {
		t.Errorf("%+v", st)
	}
}

// stormOnce sends a call on some connections that are closed at once, and then on one that
// stays open.
func stormOnce(addr string, xid uint32, lost int) error {
	for try := 0; ; try++ {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		err = nc.SetDeadline(time.Now().Add(patience))
		if err == nil {
			_, err = nc.Write(record(message(xid, procOnce, str("x"))))
		}
		if err == nil && try >= lost {
			err = readEcho(nc, xid)
		}
		if err := errors.Join(err, nc.Close()); err != nil || try >= lost {
			return err
		}
	}
}

func readEcho(nc net.Conn, xid uint32) error {
	r := recordReader{src: nc, buf: make([]byte, 256), ahead: 256, max: 256}
	if err := r.begin(); err != nil {
		return err
	}
	p := make([]byte, r.left)
	if _, err := r.full(p); err != nil {
		return err
	}
	if want := append(words(xid, 1, 0, 0, 0, 0), str("x")...); !bytes.Equal(p, want) {
		return fmt.Errorf("the reply is %x, want %x", p, want)
	}
	return nil
}
