package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// script is a server whose part the test plays itself.
type script struct {
	t     testing.TB
	l     net.Listener
	conns chan net.Conn
}

func newScript(t testing.TB) *script {
	t.Helper()
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, l: l, conns: make(chan net.Conn, 64)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.conns <- nc
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return s
}

func (s *script) dial(ctx context.Context) (net.Conn, error) {
	return dialTo(s.l.Addr().String())(ctx)
}

// accept takes the client's next connection.
func (s *script) accept() *rawConn {
	s.t.Helper()
	select {
	case nc := <-s.conns:
		return newRaw(s.t, nc)
	case <-time.After(patience):
		s.t.Fatal("the client does not connect")
		return nil
	}
}

// call reads one call: its number, its procedure, its arguments.
func (r *rawConn) call() (xid, number uint32, args []byte) {
	r.t.Helper()
	rec, err := r.receive()
	if err != nil {
		r.t.Fatalf("reading a call: %v", err)
	}
	d := xdr.NewDecoder(rec)
	var h callHead
	if err := h.decode(&d); err != nil {
		r.t.Fatal(err)
	}
	return h.xid, h.proc, d.Rest()
}

// accepted is a reply of success.
func accepted(xid uint32, results []byte) []byte {
	return append(appendAccepted(nil, xid, nil, Success), results...)
}

// begin makes a call in the background.
func begin(f func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func await(t testing.TB, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		t.Fatalf("the call does not return\n%s", buf[:runtime.Stack(buf, true)])
		return nil
	}
}

// is returns a check that an error is all of these.
func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if !errors.Is(err, target) {
				return false
			}
		}
		return err != nil
	}
}

// says returns a check that an error is an answer like want.
func says(want error) func(error) bool {
	return func(err error) bool {
		for ; err != nil; err = errors.Unwrap(err) {
			if reflect.DeepEqual(err, want) {
				return true
			}
		}
		return false
	}
}

func isLength(err error) bool { _, ok := errors.AsType[*xdr.LengthError](err); return ok }
func isValue(err error) bool  { _, ok := errors.AsType[*xdr.ValueError](err); return ok }

func isTooMuch(err error) bool {
	_, ok := errors.AsType[*RecordError](err)
	return ok
}

func isMisfit(err error) bool { return errors.Is(err, xdr.ErrShort) || errors.Is(err, xdr.ErrTrailing) }

// verf is a reply's head up to the accept_stat, its verifier n bytes long.
func verf(n uint32, have int) []byte {
	return append(words(7, 1, 0, 0, n), make([]byte, have)...)
}

func join(p ...[]byte) []byte { return bytes.Join(p, nil) }

// hostileReplies are replies to call 7, an ECHO or a READ of up to 10 bytes, and
// what the client makes of them.
var hostileReplies = []struct {
	name  string
	msg   []byte
	check func(error) bool
	dies  bool // the connection does
}{
	{"program unavailable", join(verf(0, 0), words(1)), says(&AcceptError{Stat: ProgUnavail}), false},
	{"program mismatch", join(verf(0, 0), words(2, 3, 4)), says(&AcceptError{Stat: ProgMismatch, Low: 3, High: 4}), false},
	{"program mismatch, cut", join(verf(0, 0), words(2, 3)), is(xdr.ErrShort), false},
	{"procedure unavailable", join(verf(0, 0), words(3)), says(&AcceptError{Stat: ProcUnavail}), false},
	{"garbage arguments", join(verf(0, 0), words(4)), says(&AcceptError{Stat: GarbageArgs}), false},
	{"system error", join(verf(0, 0), words(5)), says(&AcceptError{Stat: SystemErr}), false},
	{"system error, and more", join(verf(0, 0), words(5, 1, 2, 3)), says(&AcceptError{Stat: SystemErr}), false},
	{"unknown accept_stat", join(verf(0, 0), words(6)), isValue, false},
	{"program mismatch without a range", join(verf(0, 0), words(2)), says(&AcceptError{Stat: ProgMismatch}), false},
	{"RPC mismatch without a range", words(7, 1, 1, 0), says(&DeniedError{Stat: RPCMismatch}), false},
	{"RPC mismatch", words(7, 1, 1, 0, 5, 9), says(&DeniedError{Stat: RPCMismatch, Low: 5, High: 9}), false},
	{"credential refused", words(7, 1, 1, 1, 5), says(&DeniedError{Stat: AuthRejected, Auth: AuthTooWeak}), false},
	{"credential refused, unknown why", words(7, 1, 1, 1, 999), says(&DeniedError{Stat: AuthRejected, Auth: 999}), false},
	{"denied, cut", words(7, 1, 1, 1), is(xdr.ErrShort), false},
	{"unknown reject_stat", words(7, 1, 1, 2, 0, 0), isValue, false},
	{"unknown reply_stat", words(7, 1, 2, 0, 0), isValue, false},
	{"nothing but a number", words(7, 1), is(xdr.ErrShort), false},
	{"longest verifier, then no status", verf(400, 400), is(xdr.ErrShort), false},
	{"verifier too long", join(verf(401, 404), words(0)), isLength, false},
	{"endless verifier", verf(0xffffffff, 0), isLength, false},
	{"no results", join(verf(0, 0), words(0)), is(xdr.ErrShort), false},
	{"results that do not fit", join(verf(0, 0), words(0, 0, 9), []byte("abc")), isMisfit, false},
	{"a call", words(7, 0, 2, 1, 1, 1), is(errNotReply), true},
	{"no message", words(7), is(errCutMessage), true},
	{"an empty record", nil, is(errCutMessage), true},
	{"too long a record", join(verf(0, 0), words(0), make([]byte, 2<<20)), isTooMuch, true},
}

// TestClientReplies gives each reply to a plain call and to one with bulk, whole
// and in fragments, and then, on whatever connection there is, a good one.
func TestClientReplies(t *testing.T) {
	calls := map[string]func(ctx context.Context, c *Client) error{
		"plain": func(ctx context.Context, c *Client) error {
			_, err := c.Call(ctx, proc(procEcho), Auth{}, &opaque{}, &opaque{})
			return err
		},
		"bulk": func(ctx context.Context, c *Client) error {
			_, err := c.Call(ctx, proc(procRead), Auth{}, &readArgs{}, &readRes{Data: make([]byte, 10)})
			return err
		},
	}
	for _, h := range hostileReplies {
		for kind, call := range calls {
			for cut, n := range map[string]int{"whole": 4 << 20, "cut": 5} {
				t.Run(h.name+"/"+kind+"/"+cut, func(t *testing.T) {
					s := newScript(t)
					c := newClient(t, ClientOptions{Dial: s.dial, FirstXID: 7, Retries: -1, MaxReply: 1 << 20})
					done := begin(func() error { return call(t.Context(), c) })
					r := s.accept()
					r.call()
					_, _ = r.nc.Write(record(pieces(h.msg, n)...)) // the client may hang up half-way
					if err := await(t, done); !h.check(err) {
						t.Fatalf("error %v", err)
					}
					done = begin(func() error { return callEcho(t.Context(), c, procEcho, "good") })
					if h.dies {
						r = s.accept()
					}
					xid, _, args := r.call()
					r.send(record(accepted(xid, args)))
					if err := await(t, done); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

// TestBulkReplies are results with bulk that are not as they should be.
func TestBulkReplies(t *testing.T) {
	note := func(n int) []byte { return xdr.AppendOpaque(words(0), make([]byte, n)) }
	for _, h := range []struct {
		name    string
		results []byte
		check   func(error) bool
		dies    bool
	}{
		{"status", words(5), nil, false},
		{"status, and more", words(5, 1), is(xdr.ErrTrailing), false},
		{"status, and much more", join(words(5), make([]byte, 100000)), is(xdr.ErrTrailing), false},
		{"no bulk", join(note(0), words(0, 1)), nil, false},
		{"full", join(note(0), words(10), make([]byte, 12), words(1)), nil, false},
		{"long head", join(note(5000), words(10), make([]byte, 12), words(1)), nil, false},
		{"head too long", join(note(maxReplyHead), words(10), make([]byte, 12), words(1)), is(xdr.ErrShort), false},
		{"head cut", words(0, 100, 1), is(xdr.ErrShort), false},
		{"bulk cut", join(note(0), words(10), make([]byte, 8)), is(xdr.ErrShort), false},
		{"padding cut", join(note(0), words(10), make([]byte, 11)), is(xdr.ErrShort), false},
		{"tail cut", join(note(0), words(10), make([]byte, 12)), is(xdr.ErrShort), false},
		{"bytes behind the tail", join(note(0), words(10), make([]byte, 12), words(1, 2)), is(xdr.ErrTrailing), false},
		{"much behind the tail", join(note(0), words(10), make([]byte, 12), make([]byte, 99999)), is(xdr.ErrTrailing), false},
		{"a byte too much", join(note(0), words(11), make([]byte, 12), words(1)), isLength, true},
		{"far too much", join(note(0), words(0xffffffff), make([]byte, 12), words(1)), isLength, true},
	} {
		for cut, n := range map[string]int{"whole": 4 << 20, "cut": 7} {
			t.Run(h.name+"/"+cut, func(t *testing.T) {
				s := newScript(t)
				c := newClient(t, ClientOptions{Dial: s.dial})
				buf := bytes.Repeat([]byte{0xee}, 14)
				done := begin(func() error {
					r, err := c.Call(t.Context(), proc(procRead), Auth{}, &readArgs{}, &readRes{Data: buf[2:12:12]})
					r.Release()
					return err
				})
				r := s.accept()
				xid, _, _ := r.call()
				r.send(record(pieces(accepted(xid, h.results), n)...))
				if err := await(t, done); (h.check == nil && err != nil) || (h.check != nil && !h.check(err)) {
					t.Errorf("error %v", err)
				}
				if buf[0]&buf[1]&buf[12]&buf[13] != 0xee {
					t.Errorf("bytes around the buffer were touched: %x", buf)
				}
				waitFor(t, "the connection's state", func() bool { return (c.Stats().Conns == 0) == h.dies })
			})
		}
	}
}

// TestBulkVerifier: a head that takes a larger buffer than it was begun in takes the
// server's verifier with it.
func TestBulkVerifier(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial})
	var reply Reply
	done := begin(func() (err error) {
		reply, err = c.Call(t.Context(), proc(procRead), Auth{}, &readArgs{}, &readRes{Data: make([]byte, 10)})
		return err
	})
	r := s.accept()
	xid, _, _ := r.call()
	verifier := make([]byte, MaxAuthBody)
	pattern(verifier, 1)
	results := join(words(0), str(strings.Repeat("n", replyHead)), words(10), make([]byte, 12), words(1))
	r.send(record(append(appendAccepted(nil, xid, verifier, Success), results...)))
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	defer reply.Release()
	if !bytes.Equal(reply.Verf.Body, verifier) || &reply.Verf.Body[0] != &reply.rec.B[5*4] {
		t.Error("the verifier stands in memory that is somebody else's")
	}
}

// TestCancelBulk cancels a READ of which half has arrived. It returns although
// the server stands still; the other half goes nowhere; the connection lives.
func TestCancelBulk(t *testing.T) {
	const size = 1 << 20
	for _, part := range []int{0, 2, 30, 100, 600, size / 2, size + 40} {
		t.Run(fmt.Sprint(part), func(t *testing.T) { cancelBulk(t, size, part, 64<<10) })
	}
	// In one fragment, of which all has to be there to wake the reader.
	for _, part := range []int{600, 8 << 10, size / 2, size - 1} {
		t.Run(fmt.Sprint(part, " of one"), func(t *testing.T) { cancelBulk(t, size, part, 2*size) })
	}
}

func cancelBulk(t *testing.T, size, part, fragment int) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	buf := make([]byte, size)
	done := begin(func() error {
		_, err := c.Call(ctx, proc(procRead), Auth{}, &readArgs{}, &readRes{Data: buf})
		return err
	})
	r := s.accept()
	xid, _, _ := r.call()
	data := bytes.Repeat([]byte{0x55}, size)
	rec := record(pieces(accepted(xid, join(words(0, 0, uint32(size)), data, words(1))), fragment)...)
	before := c.Stats().BytesIn
	r.send(rec[:part])
	waitFor(t, "the first part", func() bool {
		got := c.Stats().BytesIn - before
		return got == uint64(part) || fragment > size && got > 0
	})
	cancel()
	if err := await(t, done); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("error %v", err)
	}
	for i := range buf {
		buf[i] = 0xaa
	}
	r.send(rec[part:])
	done = begin(func() error { return callEcho(t.Context(), c, procEcho, "next") })
	xid, _, args := r.call()
	r.send(record(accepted(xid, args)))
	if err := await(t, done); err != nil {
		t.Fatalf("the next call: %v", err)
	}
	for i := range buf {
		if buf[i] != 0xaa {
			t.Fatalf("byte %d was touched", i)
		}
	}
	if st := c.Stats(); st.Late != 1 || st.Dials != 1 || st.Cancelled != 1 {
		t.Errorf("%+v", st)
	}
}

// TestCancelWrite cancels a WRITE that the server does not take. What the server
// reads later is the call as it was, although its buffer has changed.
func TestCancelWrite(t *testing.T) {
	const size = 16 << 20 // more than the sockets hold
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	want := make([]byte, size)
	pattern(want, 3)
	data := bytes.Clone(want)
	write := begin(func() error {
		_, err := c.Call(ctx, proc(procWrite), Auth{}, &writeArgs{Data: data}, &writeRes{})
		return err
	})
	r := s.accept()
	waitFor(t, "the socket to fill", func() bool { return stuck(c) })
	// These stand in the queue behind the write: one stays, two leave.
	queued, leave := context.WithCancel(t.Context())
	defer leave()
	stays := begin(func() error { return callEcho(t.Context(), c, procEcho, "stays") })
	other := bytes.Clone(want)
	left := []chan error{
		begin(func() error { return callEcho(queued, c, procOnce, "leaves") }),
		begin(func() error {
			_, err := c.Call(queued, proc(procWrite), Auth{}, &writeArgs{Data: other}, &writeRes{})
			return err
		}),
	}
	waitFor(t, "the queue", func() bool { return c.queued() == 3 })
	leave()
	for _, done := range left {
		if err := await(t, done); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("queued call: %v", err)
		}
	}
	cancel()
	if err := await(t, write); !errors.Is(err, context.Canceled) {
		t.Fatalf("write: %v", err)
	}
	clear(data)
	clear(other)
	_, number, args := r.call()
	if number != procWrite || !bytes.Equal(args[8:8+size], want) {
		t.Fatalf("the server reads another call, of procedure %d", number)
	}
	xid, number, args := r.call()
	if number != procEcho {
		t.Fatalf("then procedure %d", number)
	}
	r.send(record(accepted(xid, args)))
	if err := await(t, stays); err != nil {
		t.Fatal(err)
	}
	if st := c.Stats(); st.Dials != 1 {
		t.Errorf("%+v", st)
	}
}

// stuck reports whether a write of c has been under way for some ticks.
func stuck(c *Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) > 0 && c.conns[0].began != 0 && c.now-c.conns[0].began > 3*tickEvery
}

func (c *Client) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns[0].queue)
}

// TestEarlyReply has a server that answers a WRITE before it has read it: the
// call must not return while its bytes are being written.
func TestEarlyReply(t *testing.T) {
	const size = 16 << 20
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial, FirstXID: 50})
	want := make([]byte, size)
	pattern(want, 3)
	data := bytes.Clone(want)
	write := begin(func() error {
		r, err := c.Call(t.Context(), proc(procWrite), Auth{}, &writeArgs{Data: data}, &writeRes{})
		r.Release()
		clear(data)
		return err
	})
	r := s.accept()
	waitFor(t, "the socket to fill", func() bool { return stuck(c) })
	r.send(record(accepted(50, words(1, 2))))
	if err := await(t, write); err != nil {
		t.Fatal(err)
	}
	if _, _, args := r.call(); !bytes.Equal(args[8:8+size], want) {
		t.Error("the server reads bytes that the caller had got back")
	}
}

// TestLateReplies cancels calls and answers them afterwards, twice over.
func TestLateReplies(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial})
	var r *rawConn
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		done := begin(func() error { return callEcho(ctx, c, procOnce, "early") })
		if r == nil {
			r = s.accept()
		}
		xid, _, args := r.call()
		cancel()
		if err := await(t, done); !is(context.Canceled, ErrUnknownOutcome)(err) {
			t.Fatalf("call %d: %v", i, err)
		}
		late := record(accepted(xid, args))
		r.send(join(late, late))
	}
	done := begin(func() error { return callEcho(t.Context(), c, procEcho, "good") })
	xid, _, args := r.call()
	r.send(record(accepted(xid, args)))
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	if st := c.Stats(); st.Late != 100 || st.Stray != 0 || st.Dials != 1 || st.InFlight != 0 {
		t.Errorf("%+v", st)
	}
}

// TestStrayReplies sends replies to calls that were never made: a few are
// passed over, a flood ends the connection.
func TestStrayReplies(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial, FirstXID: 100, Retries: -1})
	done := begin(func() error { return callEcho(t.Context(), c, procEcho, "a") })
	r := s.accept()
	xid, _, args := r.call()
	stray := record(accepted(xid+1000, nil))
	r.send(join(bytes.Repeat(stray, maxStray), record(accepted(xid, args))))
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	done = begin(func() error { return callEcho(t.Context(), c, procEcho, "b") })
	r.call()
	r.send(bytes.Repeat(stray, maxStray+1))
	if err := await(t, done); !errors.Is(err, errStray) {
		t.Errorf("error %v", err)
	}
}

// TestLostConnection has a server that reads a call and hangs up, three times: the
// call gets through for all that, unless it is not to be sent again.
func TestLostConnection(t *testing.T) {
	for _, retries := range []int{-1, 1} {
		t.Run(fmt.Sprint(retries), func(t *testing.T) {
			s := newScript(t)
			c := newClient(t, ClientOptions{Dial: s.dial, Retries: retries})
			done := begin(func() error { return callEcho(t.Context(), c, procEcho, "again") })
			numbers := make(map[uint32]bool)
			for range 2 + retries {
				r := s.accept()
				xid, _, _ := r.call()
				numbers[xid] = true
				if err := r.nc.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if retries == 1 {
				r := s.accept()
				xid, _, args := r.call()
				numbers[xid] = true
				r.send(record(accepted(xid, args)))
			}
			if err := await(t, done); (err == nil) != (retries == 1) || errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("error %v", err)
			}
			if len(numbers) != 1 {
				t.Errorf("the call had numbers %v", numbers)
			}
		})
	}
}

// TestLostOnce is TestLostConnection with a call that may not be repeated.
func TestLostOnce(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial})
	done := begin(func() error { return callEcho(t.Context(), c, procOnce, "once") })
	r := s.accept()
	r.call()
	if err := r.nc.Close(); err != nil {
		t.Fatal(err)
	}
	if err := await(t, done); !is(ErrUnknownOutcome, io.EOF)(err) {
		t.Errorf("error %v", err)
	}
	if st := c.Stats(); st.Dials != 1 || st.Retransmits != 0 {
		t.Errorf("%+v", st)
	}
}

// TestClose ends a client under its callers.
func TestClose(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial})
	plain := begin(func() error { return callEcho(t.Context(), c, procEcho, "a") })
	r := s.accept()
	r.call()
	once := begin(func() error { return callEcho(t.Context(), c, procOnce, "b") })
	r.call()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := await(t, plain); !errors.Is(err, ErrClosed) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("repeatable call: %v", err)
	}
	if err := await(t, once); !is(ErrClosed, ErrUnknownOutcome)(err) {
		t.Errorf("other call: %v", err)
	}
	if err := callEcho(t.Context(), c, procEcho, "c"); !errors.Is(err, ErrClosed) {
		t.Errorf("call on a closed client: %v", err)
	}
	if st := c.Stats(); st.Dials != 1 || st.Retransmits != 0 {
		t.Errorf("%+v", st)
	}
}

// TestBadArguments are arguments and credentials that do not encode. Nothing is
// sent, and calls next to them do not suffer.
func TestBadArguments(t *testing.T) {
	_, srv, c := pair(t, ServerOptions{}, ClientOptions{})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if i%2 == 0 {
				if err := callEcho(t.Context(), c, procEcho, "fine"); err != nil {
					t.Error(err)
				}
				return
			}
			_, err := c.Call(t.Context(), proc(procOnce), Auth{}, &opaque{b: make([]byte, maxEcho+1)}, &opaque{})
			if !isLength(err) || errors.Is(err, ErrUnknownOutcome) {
				t.Errorf("arguments above their bound: %v", err)
			}
		})
	}
	wg.Wait()
	if _, err := c.Call(t.Context(), proc(procEcho), Auth{}, panics{}, &opaque{}); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("arguments that panic: %v", err)
	}
	if _, err := c.Call(t.Context(), proc(procEcho), Auth{}, forgets{}, &opaque{}); !errors.Is(err, ErrNotSent) || !errors.Is(err, errTest) {
		t.Errorf("arguments that do not encode: %v", err)
	}
	_, err := c.Call(t.Context(), proc(procEcho), Auth{Body: make([]byte, 401)}, &opaque{}, &opaque{})
	if !isLength(err) || !strings.Contains(err.Error(), "ECHO") {
		t.Errorf("credential above its bound: %v", err)
	}
	if n := srv.Stats().Calls; n != 50 {
		t.Errorf("the server has seen %d calls", n)
	}
}

// panics are arguments that do.
type panics struct{}

func (panics) AppendXDR([]byte) ([]byte, error) { panic("no such thing") }

// forgets are arguments that do not encode, and lose what stood before them.
type forgets struct{}

func (forgets) AppendXDR([]byte) ([]byte, error) { return nil, errTest }

// TestReplyBound: a reply may have what its call asked for, and MaxReply beside that, to the
// byte. One more byte ends the connection, and other calls are as they were.
func TestReplyBound(t *testing.T) {
	const beside, asked = 8 << 10, 100 << 10
	head := len(accepted(0, nil))
	calls := map[string]struct {
		most int
		call func(ctx context.Context, c *Client) error
	}{
		"small": {beside, func(ctx context.Context, c *Client) error {
			r, err := c.Call(ctx, proc(procEcho), Auth{}, &opaque{}, &opaque{})
			r.Release()
			return err
		}},
		"asks": {beside + asked, func(ctx context.Context, c *Client) error {
			r, err := c.Call(ctx, proc(procEcho), Auth{}, &readArgs{Count: asked}, &opaque{})
			r.Release()
			return err
		}},
	}
	for name, k := range calls {
		for cut, n := range map[string]int{"whole": 4 << 20, "cut": 1000} {
			for _, over := range []int{0, 4} {
				t.Run(fmt.Sprint(name, "/", cut, "/over by ", over), func(t *testing.T) {
					s := newScript(t)
					c := newClient(t, ClientOptions{Dial: s.dial, Retries: -1, MaxReply: beside})
					done := begin(func() error { return k.call(t.Context(), c) })
					r := s.accept()
					xid, _, _ := r.call()
					_, _ = r.nc.Write(record(pieces(accepted(xid, xdr.AppendOpaque(nil, make([]byte, k.most-head-4+over))), n)...))
					err := await(t, done)
					if _, tooLong := errors.AsType[*RecordError](err); tooLong != (over > 0) || !tooLong && err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}
