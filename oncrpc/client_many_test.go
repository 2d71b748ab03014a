package oncrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

// echoes are calls of ECHO, each with a text of its own.
func echoes(n int, who string) ([]Exchange, []opaque) {
	args, res, xs := make([]opaque, n), make([]opaque, n), make([]Exchange, n)
	for i := range xs {
		args[i].b = fmt.Appendf(nil, "%s %d", who, i)
		xs[i] = Exchange{Proc: echoProc, Args: &args[i], Res: &res[i]}
	}
	return xs, res
}

// checkEchoes releases the replies of echoes.
func checkEchoes(t *testing.T, xs []Exchange, res []opaque) {
	t.Helper()
	for i := range xs {
		want := xs[i].Args.(*opaque).b
		if xs[i].Err != nil || !bytes.Equal(res[i].b, want) {
			t.Errorf("call %d: %q, %v; want %q", i, res[i].b, xs[i].Err, want)
		}
		xs[i].Reply.Release()
	}
}

// TestCallMany: more calls than there are slots, by several callers at once, in
// few writes.
func TestCallMany(t *testing.T) {
	for _, conns := range []int{1, 4} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			noLeaks(t)
			_, _, c := pair(t, ServerOptions{}, ClientOptions{Conns: conns})
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					xs, res := echoes(3*maxInFlight, fmt.Sprint("caller ", g))
					c.CallMany(t.Context(), xs)
					checkEchoes(t, xs, res)
				})
			}
			wg.Wait()
			if st := c.Stats(); st.InFlight != 0 || st.Calls != 12*maxInFlight || st.Replies != st.Calls {
				t.Errorf("%+v", st)
			}
		})
	}
}

func isNil(err error) bool { return err == nil }

// TestCallManyMixed: each call has the outcome that it would have had alone.
func TestCallManyMixed(t *testing.T) {
	noLeaks(t)
	_, _, c := pair(t, ServerOptions{}, ClientOptions{})
	buf := make([]byte, 100_000)
	var echo opaque
	read := readRes{Data: buf}
	xs := []Exchange{
		{Proc: echoProc, Args: &opaque{b: make([]byte, maxEcho+1)}, Res: &opaque{}},
		{Proc: echoProc, Auth: Auth{Body: make([]byte, 401)}, Args: &opaque{}, Res: &opaque{}},
		{Proc: proc(procHole), Args: xdr.Void{}, Res: xdr.Void{}},
		{Proc: echoProc, Args: panics{}, Res: &opaque{}},
		{Proc: echoProc, Args: forgets{}, Res: &opaque{}},
		{Proc: readProc, Args: &readArgs{Seed: 5, Count: 77_777}, Res: &read},
		{Proc: echoProc, Args: &opaque{b: []byte("last")}, Res: &echo},
	}
	c.CallMany(t.Context(), xs)
	for i, ok := range []func(error) bool{isLength, is(ErrNotSent), says(&AcceptError{Stat: ProcUnavail}), is(ErrNotSent), is(ErrNotSent, errTest), isNil, isNil} {
		if !ok(xs[i].Err) {
			t.Errorf("call %d: %v", i, xs[i].Err)
		}
	}
	want := make([]byte, 77_777)
	pattern(want, 5)
	if string(echo.b) != "last" || !bytes.Equal(read.Data, want) || read.Tail != 5 {
		t.Errorf("results %q, %d bytes, tail %d", echo.b, len(read.Data), read.Tail)
	}
	for i := range xs {
		xs[i].Reply.Release()
	}
}

// TestCallManyCancelled: a context that ends frees all calls that wait, and those
// that were answered keep their answers.
func TestCallManyCancelled(t *testing.T) {
	noLeaks(t)
	s, _, c := pair(t, ServerOptions{}, ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	xs, res := echoes(3, "quick")
	for range 5 {
		xs = append(xs, Exchange{Proc: proc(procWait), Args: xdr.Void{}, Res: xdr.Void{}})
	}
	done := begin(func() error { c.CallMany(ctx, xs); return nil })
	for range 5 {
		s.begun(t)
	}
	for c.Stats().Replies < 3 {
		time.Sleep(time.Millisecond) // the echoes are on their way
	}
	cancel()
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	checkEchoes(t, xs[:3], res)
	for i := range xs[3:] {
		if err := xs[3+i].Err; !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", 3+i, err)
		}
	}
	c.CallMany(ctx, xs[:1])
	if err := xs[0].Err; !errors.Is(err, context.Canceled) || !errors.Is(err, ErrNotSent) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if xs[0].Reply.rec != nil {
		t.Error("a call that has failed has the reply of the one before, which was released")
	}
}

// TestCallManyApart: while the caller waits for a reply on one connection, those that
// come on another are read all the same.
func TestCallManyApart(t *testing.T) {
	s := newScript(t)
	c := newClient(t, ClientOptions{Dial: s.dial, Conns: 8}) // two of them for metadata
	done := begin(func() error { return callEcho(t.Context(), c, procEcho, "first") })
	here := s.accept()
	here.answer()
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.grow(metaLane)
	c.mu.Unlock()
	there := s.accept()
	waitFor(t, "the second connection", func() bool { return c.Stats().Conns == 2 })
	xs, res := echoes(2, "apart")
	done = begin(func() error { c.CallMany(t.Context(), xs); return nil })
	xid, _, args := here.call()
	there.answer()
	waitFor(t, "the reply on the other connection", func() bool { return c.Stats().Replies == 2 })
	here.send(record(accepted(xid, args)))
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	checkEchoes(t, xs, res)
}

// TestCallManyWrites: what the caller has to write is written before it waits for a
// connection, wherever among its calls it stands.
func TestCallManyWrites(t *testing.T) {
	s := newScript(t)
	var dials atomic.Int32
	c := newClient(t, ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		if dials.Add(1) == 1 {
			return s.dial(ctx)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	done := begin(func() error { return callEcho(t.Context(), c, procEcho, "first") })
	r := s.accept()
	r.answer()
	if err := await(t, done); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	xs, _ := echoes(2, "written")
	c.mu.Lock()
	cc, now := c.conns[0], c.clock()
	cc.heard = now // it needs no look
	xs[1].pc = c.issue(ctx, now, echoProc, Auth{}, xs[1].Args, xs[1].Res)
	cc.retire()
	xs[0].pc = c.issue(ctx, now, echoProc, Auth{}, xs[0].Args, xs[0].Res)
	c.mu.Unlock()
	done = begin(func() error { c.exchangeMany(xs); return nil })
	r.answer() // of the second call, while the first waits for its connection
	cancel()
	if err := await(t, done); err != nil || !errors.Is(xs[0].Err, context.Canceled) {
		t.Errorf("%v, %v", err, xs[0].Err)
	}
	xs[1].Reply.Release()
}

// TestCallManyChaos: connections that are cut, and replies that are late, double
// and in another order.
func TestCallManyChaos(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &chaos{t: t, every: 777}
	x.wg.Go(func() { x.serve(l) })
	c := NewClient(ClientOptions{Dial: dialTo(l.Addr().String()), Conns: 2, Retries: 8, Timeout: 5 * time.Second})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for round := range 20 {
				xs, res := echoes(64, fmt.Sprint("caller ", g, " round ", round))
				c.CallMany(t.Context(), xs)
				checkEchoes(t, xs, res)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(c.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	x.wg.Wait()
	if end := c.Stats(); end.Buffers != 0 || end.InFlight != 0 || x.cuts.Load() < 10 || end.Retransmits == 0 {
		t.Errorf("%d cuts; left behind: %+v", x.cuts.Load(), end)
	}
}

// TestCallManyNowhere: without a server, one dial fails for all.
func TestCallManyNowhere(t *testing.T) {
	noLeaks(t)
	dials := 0
	c := newClient(t, ClientOptions{DialTries: 1, Dial: func(context.Context) (net.Conn, error) {
		dials++
		return nil, errors.New("nobody there")
	}})
	xs, _ := echoes(64, "nobody")
	c.CallMany(t.Context(), xs)
	for i := range xs {
		if !errors.Is(xs[i].Err, ErrNoConnection) || !errors.Is(xs[i].Err, ErrNotSent) {
			t.Errorf("call %d: %v", i, xs[i].Err)
		}
	}
	if dials != 1 {
		t.Errorf("%d dials", dials)
	}
}
