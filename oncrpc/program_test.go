package oncrpc

import (
	"context"
	"errors"
	"hash/crc32"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// The program that the tests speak.
const (
	procNull  = 0
	procEcho  = 1 // opaque -> the same opaque
	procRead  = 2 // readArgs -> readRes, with bulk
	procWrite = 3 // writeArgs, with bulk -> how many bytes, and their sum
	procOnce  = 4 // like echo, and not repeatable
	procWait  = 5 // void -> void, when the test says so
	procFail  = 6 // string -> fails in the way the string says
	procHole  = 7 // no handler
)

const (
	testProgram = 0x20004000
	testVersion = 3
	maxEcho     = 1 << 20
	maxBulk     = 4 << 20
)

func testDescriptor() *xdr.Program {
	p := &xdr.Program{Name: "TEST_V3", Number: testProgram, Version: testVersion}
	for i, name := range []string{"NULL", "ECHO", "READ", "WRITE", "ONCE", "WAIT", "FAIL", "HOLE"} {
		p.Procs = append(p.Procs, xdr.Proc{Name: name, Program: testProgram, Version: testVersion,
			Number: uint32(i), Repeatable: i != procOnce, BulkArgs: i == procWrite, BulkResult: i == procRead})
	}
	return p
}

// opaque is the arguments and the result of ECHO.
type opaque struct{ b []byte }

func (o *opaque) AppendXDR(b []byte) ([]byte, error) {
	if err := xdr.CheckLen("opaque", len(o.b), maxEcho); err != nil {
		return b, err
	}
	return xdr.AppendOpaque(b, o.b), nil
}

func (o *opaque) DecodeXDR(d *xdr.Decoder) error {
	o.b = d.Opaque("opaque", maxEcho)
	return d.Err()
}

type readArgs struct{ Seed, Count uint32 }

func (a *readArgs) AppendXDR(b []byte) ([]byte, error) {
	return xdr.AppendUint32(xdr.AppendUint32(b, a.Seed), a.Count), nil
}

func (a *readArgs) DecodeXDR(d *xdr.Decoder) error {
	a.Seed, a.Count = d.Uint32(), d.Uint32()
	return d.Err()
}

// Asks is Count: results may have so many bytes of data.
func (a *readArgs) Asks() uint32 { return a.Count }

// readRes is a status; with 0 follow a note of any length, the bulk and a tail.
type readRes struct {
	Status uint32
	Note   []byte
	Data   []byte
	Tail   uint32
	n      int
}

func (r *readRes) AppendXDR(b []byte) ([]byte, error) {
	b, err := r.AppendHead(b)
	if err != nil || r.Status != 0 {
		return b, err
	}
	return r.AppendTail(append(b, r.Data...))
}

func (r *readRes) AppendHead(b []byte) ([]byte, error) {
	b = xdr.AppendUint32(b, r.Status)
	if r.Status != 0 {
		return b, nil
	}
	b = xdr.AppendOpaque(b, r.Note)
	return xdr.AppendUint32(b, uint32(len(r.Data))), nil
}

func (r *readRes) Bulk() []byte { return r.Data }

func (r *readRes) AppendTail(b []byte) ([]byte, error) {
	return xdr.AppendUint32(xdr.AppendPad(b, len(r.Data)), r.Tail), nil
}

func (r *readRes) DecodeHead(d *xdr.Decoder) ([]byte, int, error) {
	r.Status = d.Uint32()
	if r.Status != 0 || d.Err() != nil {
		return nil, 0, d.Err()
	}
	r.Note = d.Opaque("note", maxReplyHead*2)
	n := d.Uint32()
	if d.Err() != nil {
		return nil, 0, d.Err()
	}
	if int64(n) > int64(len(r.Data)) {
		return nil, 0, &xdr.LengthError{What: "data", Len: uint64(n), Max: uint64(len(r.Data))}
	}
	r.n = int(n)
	return r.Data, r.n, nil
}

func (r *readRes) DecodeTail(d *xdr.Decoder) error {
	r.Data = r.Data[:r.n]
	r.Tail = d.Uint32()
	return d.Err()
}

func (r *readRes) DecodeXDR(d *xdr.Decoder) error {
	dst, n, err := r.DecodeHead(d)
	if err != nil || dst == nil {
		return err
	}
	copy(dst, d.Fixed(n))
	return r.DecodeTail(d)
}

type writeArgs struct {
	Name []byte
	Data []byte
	Tail uint32
}

func (a *writeArgs) AppendXDR(b []byte) ([]byte, error) {
	b, err := a.AppendHead(b)
	if err != nil {
		return b, err
	}
	return a.AppendTail(append(b, a.Data...))
}

func (a *writeArgs) AppendHead(b []byte) ([]byte, error) {
	return xdr.AppendUint32(xdr.AppendOpaque(b, a.Name), uint32(len(a.Data))), nil
}

func (a *writeArgs) Bulk() []byte { return a.Data }

func (a *writeArgs) AppendTail(b []byte) ([]byte, error) {
	return xdr.AppendUint32(xdr.AppendPad(b, len(a.Data)), a.Tail), nil
}

func (a *writeArgs) DecodeXDR(d *xdr.Decoder) error {
	a.Name = d.Opaque("name", 255)
	a.Data = d.Opaque("data", maxBulk)
	a.Tail = d.Uint32()
	return d.Err()
}

type writeRes struct{ Count, Sum uint32 }

func (r *writeRes) AppendXDR(b []byte) ([]byte, error) {
	return xdr.AppendUint32(xdr.AppendUint32(b, r.Count), r.Sum), nil
}

func (r *writeRes) DecodeXDR(d *xdr.Decoder) error {
	r.Count, r.Sum = d.Uint32(), d.Uint32()
	return d.Err()
}

// pattern fills p with bytes that depend on seed and position. The period is a
// prime, so that data at a wrong place is wrong data.
func pattern(p []byte, seed uint32) {
	n := min(len(p), 1021)
	for i := range n {
		p[i] = byte(seed) + byte(i)
	}
	for n > 0 && n < len(p) {
		n += copy(p[n:], p[:n])
	}
}

func sum(p []byte) uint32 { return crc32.ChecksumIEEE(p) }

// service is the test program's server side.
type service struct {
	pool bufpool.Pool
	gate chan struct{} // WAIT ends with a token, or when it is closed
	seen chan struct{} // WAIT sends a token when it begins

	mu   sync.Mutex
	once int // calls of ONCE executed
}

func newService() *service {
	return &service{gate: make(chan struct{}), seen: make(chan struct{}, 1024)}
}

func (s *service) service() Service {
	return Service{Program: testDescriptor(), Handlers: []Handler{
		nil, s.echo, s.read, s.write, s.onceOnly, s.wait, s.fail,
	}, Once: []bool{procWrite: true, procOnce: true, procFail: true}}
}

func (s *service) echo(_ context.Context, c *Call) error {
	var o opaque
	if err := o.DecodeXDR(&c.Args); err != nil {
		return err
	}
	if err := c.Args.Finish(); err != nil {
		return err
	}
	return c.Reply(&o)
}

func (s *service) onceOnly(ctx context.Context, c *Call) error {
	s.mu.Lock()
	s.once++
	s.mu.Unlock()
	return s.echo(ctx, c)
}

func (s *service) read(_ context.Context, c *Call) error {
	var a readArgs
	if err := a.DecodeXDR(&c.Args); err != nil {
		return err
	}
	if a.Count > maxBulk {
		return c.Reply(&readRes{Status: 22})
	}
	b := s.pool.Get(int(a.Count))
	pattern(b.B, a.Seed)
	return c.ReplyBulk(&readRes{Note: []byte("note"), Data: b.B, Tail: a.Seed}, b)
}

func (s *service) write(_ context.Context, c *Call) error {
	var a writeArgs
	if err := a.DecodeXDR(&c.Args); err != nil {
		return err
	}
	return c.Reply(&writeRes{Count: uint32(len(a.Data)), Sum: sum(a.Data) ^ a.Tail})
}

func (s *service) wait(ctx context.Context, _ *Call) error {
	s.seen <- struct{}{}
	select {
	case <-s.gate:
	case <-ctx.Done():
	}
	return nil
}

// begun waits for a call of WAIT.
func (s *service) begun(t testing.TB) {
	t.Helper()
	select {
	case <-s.seen:
	case <-time.After(patience):
		t.Fatal("the call does not arrive")
	}
}

var errTest = errors.New("disk on fire")

func (s *service) fail(_ context.Context, c *Call) error {
	switch how := string(c.Args.Opaque("how", 64)); how {
	case "panic":
		panic("handler in distress")
	case "exit":
		runtime.Goexit()
	case "auth":
		return &AuthError{Stat: AuthTooWeak}
	case "garbage":
		return ErrGarbageArgs
	case "short":
		c.Args.Block(1 << 20)
		return c.Args.Err()
	case "drop":
		return ErrDrop
	case "late":
		if err := c.Reply(&opaque{b: []byte("good")}); err != nil {
			return err
		}
		return errTest
	case "twice":
		if err := c.Reply(xdr.Void{}); err != nil {
			return err
		}
		return c.Reply(xdr.Void{})
	case "bad":
		return c.Reply(&opaque{b: make([]byte, maxEcho+1)})
	}
	return errTest
}

// checkPool checks, at the end of the test, that the service's bulk has come back.
func checkPool(t testing.TB, s *service) {
	t.Cleanup(func() {
		if n := s.pool.Outstanding(); n != 0 {
			t.Errorf("%d bulk buffers lost", n)
		}
	})
}

// noLeaks checks, at the end of the test, that it leaves no goroutine behind.
// Call it first.
func noLeaks(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var stacks string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if stacks = ours(); stacks == "" {
				return // the runtime needs a moment to bury them
			}
		}
		t.Errorf("goroutines left behind:\n%s", stacks)
	})
}

// ours returns the stacks of goroutines that run this package's own code,
// tests' own goroutines left out.
func ours() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var left []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "oncrpc.(*") && !strings.Contains(g, "testing.tRunner") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

// startServer serves s on loopback and returns the address.
func startServer(t testing.TB, s *service, o ServerOptions) (*Server, string) {
	t.Helper()
	noLeaks(t)
	checkPool(t, s)
	srv, err := NewServer([]Service{s.service()}, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
		if st := srv.Stats(); st.Buffers != 0 || st.RequestBytes != 0 || st.Conns != 0 || srv.underWay.Load() != 0 {
			t.Errorf("server left things behind: %+v", st)
		}
	})
	return srv, l.Addr().String()
}

func dialTo(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}

// newClient returns a client that is closed, and searched for losses, at the
// end of the test.
func newClient(t testing.TB, o ClientOptions) *Client {
	t.Helper()
	if o.FirstXID == 0 {
		o.FirstXID = 0xfffffff0 // the sequence wraps in every test
	}
	c := NewClient(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if st := c.Stats(); st.Buffers != 0 || st.InFlight != 0 || st.Conns != 0 {
			t.Errorf("client left things behind: %+v", st)
		}
	})
	return c
}

// pair is a client and a server on loopback.
func pair(t testing.TB, so ServerOptions, co ClientOptions) (*service, *Server, *Client) {
	t.Helper()
	s := newService()
	srv, addr := startServer(t, s, so)
	if co.Dial == nil {
		co.Dial = dialTo(addr)
	}
	return s, srv, newClient(t, co)
}

func proc(n int) *xdr.Proc { return &testDescriptor().Procs[n] }

func callEcho(ctx context.Context, c *Client, p int, text string) error {
	var res opaque
	r, err := c.Call(ctx, proc(p), Auth{}, &opaque{b: []byte(text)}, &res)
	defer r.Release()
	if err == nil && string(res.b) != text {
		return errors.New("echo is another's")
	}
	return err
}
