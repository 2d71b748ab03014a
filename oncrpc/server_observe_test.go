package oncrpc

import (
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/xdr"
)

// observer collects what Observe is told.
type observer struct {
	mu  sync.Mutex
	all []Served
}

func (o *observer) observe(s Served) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, s)
}

// told is what it was told so far. It checks times and addresses, and leaves them out.
func (o *observer) told(t *testing.T) []Served {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	out := slices.Clone(o.all)
	for i := range out {
		if out[i].Took <= 0 || out[i].Waited < 0 || out[i].Waited > out[i].Took {
			t.Errorf("call %d took %v, of which it waited %v", out[i].XID, out[i].Took, out[i].Waited)
		}
		if out[i].Client == nil {
			t.Errorf("call %d is nobody's", out[i].XID)
		}
		out[i].Took, out[i].Waited, out[i].Client, out[i].Args = 0, 0, nil, nil
	}
	return out
}

func always() bool { return true }

func never() bool { return false }

// TestServerObserve: Observe is told of each call that is sampled, whatever its outcome.
func TestServerObserve(t *testing.T) {
	o := &observer{}
	_, addr := startServer(t, newService(), ServerOptions{
		Replies: NewTestCache(), Observe: o.observe, Sample: always,
	})
	cred, err := (&AuthSys{Machine: "here", UID: 1000}).Auth()
	if err != nil {
		t.Fatal(err)
	}
	as := func(xid uint32, p *xdr.Proc, cred Auth, args []byte) []byte {
		return append(appendCall(nil, xid, p, &cred), args...)
	}
	unknown := &xdr.Proc{Program: testProgram, Version: 9}
	broken := Auth{Flavor: AuthSysFlavor, Body: words(1, 2)}
	var want []Served
	r := dialRaw(t, addr)
	for i, c := range []struct {
		msg  []byte
		out  int
		want Served
	}{
		{as(1, proc(procNull), Auth{}, nil), 24, Served{Proc: proc(procNull), XID: 1}},
		{as(2, proc(procEcho), cred, str("abcd")), 32, Served{Proc: proc(procEcho), XID: 2, UID: 1000, HasUID: true, Result: 4}},
		{as(3, proc(procRead), broken, words(1, maxBulk+1)), 28, Served{Proc: proc(procRead), XID: 3, Result: 22}},
		{as(4, proc(procRead), Auth{}, words(1, 10_000)), 24 + 4 + 8 + 4 + 10_000 + 4, Served{Proc: proc(procRead), XID: 4}},
		{as(5, proc(procOnce), cred, str("x")), 32, Served{Proc: proc(procOnce), XID: 5, UID: 1000, HasUID: true, Result: 1}},
		{as(5, proc(procOnce), cred, str("x")), 32, Served{Proc: proc(procOnce), XID: 5, UID: 1000, HasUID: true, Result: 1}}, // from memory
		{as(6, proc(procFail), Auth{}, str("disk")), 24, Served{Proc: proc(procFail), XID: 6, Failed: true}},
		{as(7, proc(procFail), Auth{}, str("auth")), 20, Served{Proc: proc(procFail), XID: 7, Failed: true}},
		{as(8, proc(procHole), Auth{}, nil), 24, Served{Proc: proc(procHole), XID: 8, Failed: true}},
		{as(9, unknown, cred, nil), 32, Served{XID: 9, UID: 1000, HasUID: true, Failed: true}},
	} {
		r.send(record(c.msg))
		rec, err := r.receive()
		if err != nil || len(rec) != c.out {
			t.Fatalf("call %d: an answer of %d bytes, %v", i, len(rec), err)
		}
		c.want.BytesIn, c.want.BytesOut, c.want.Sampled = len(c.msg), c.out, true
		want = append(want, c.want)
		if got := o.told(t); !reflect.DeepEqual(got, want) {
			t.Fatalf("call %d:\n%+v, want\n%+v", i, got[len(got)-1], c.want)
		}
	}
}

// TestServerObserveArgs: Observe gets the arguments whole, though the handler has read them.
func TestServerObserveArgs(t *testing.T) {
	got := make(chan []byte, 1)
	_, addr := startServer(t, newService(), ServerOptions{Sample: always, Observe: func(s Served) { got <- slices.Clone(s.Args) }})
	r := dialRaw(t, addr)
	r.send(record(message(1, procEcho, str("abcd"))))
	if _, err := r.receive(); err != nil {
		t.Fatal(err)
	}
	if args := <-got; !slices.Equal(args, str("abcd")) {
		t.Errorf("%q", args)
	}
}

// TestServerObserveSilence: Observe is told of a call without an answer, and of calls in
// datagrams, but of none that is not sampled.
func TestServerObserveSilence(t *testing.T) {
	o, pick := &observer{}, atomic.Bool{}
	pick.Store(true)
	_, addr := startPackets(t, newService(), ServerOptions{Observe: o.observe, Sample: pick.Load})
	p := dialPacket(t, addr)
	p.send(message(1, procFail, str("drop")))
	p.send(message(2, procHole, nil))
	if _, _, err := p.reply(); err == nil {
		t.Error("a procedure without a handler answers")
	}
	waitFor(t, "the second call", func() bool { return len(o.told(t)) == 2 })
	pick.Store(false)
	p.send(message(3, procEcho, str("")))
	if _, _, err := p.reply(); err != nil {
		t.Error(err)
	}
	got := o.told(t)
	slices.SortFunc(got, func(a, b Served) int { return int(a.XID) - int(b.XID) })
	if want := []Served{
		{Proc: proc(procFail), XID: 1, BytesIn: len(message(1, procFail, str("drop"))), Failed: true, Sampled: true},
		{Proc: proc(procHole), XID: 2, BytesIn: len(message(2, procHole, nil)), BytesOut: 24, Failed: true, Sampled: true},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want\n%+v", got, want)
	}
}

// TestServerObserveEnd: the server does not end before Observe has returned, and does not
// call it afterwards.
func TestServerObserveEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telling, hold, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		srv, l, stop := startPipeServer(t, newService(), ServerOptions{Sample: always, Observe: func(Served) {
			close(telling)
			<-hold
		}})
		defer stop()
		nc, err := l.dial()
		if err != nil {
			t.Fatal(err)
		}
		r := newRaw(t, nc)
		r.send(record(message(1, procEcho, str("x"))))
		<-telling
		go func() {
			defer close(closed)
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("the server has ended, and somebody is still told of a call")
		default:
		}
		close(hold)
		<-closed
	})
}

// TestServerObserveAllocs: neither Sample nor Observe costs an allocation.
func TestServerObserveAllocs(t *testing.T) {
	need.Speed(t, "it allocates")
	for name, o := range map[string]ServerOptions{
		"not picked": {Slow: time.Hour, Sample: never, Observe: func(Served) {}},
		"picked":     {Slow: time.Hour, Sample: always, Observe: func(Served) {}},
	} {
		t.Run(name, func(t *testing.T) { observeAllocs(t, o) })
	}
}

func observeAllocs(t *testing.T, o ServerOptions) {
	_, _, c := pair(t, o, ClientOptions{})
	ctx, args, res := t.Context(), &opaque{b: []byte("sixteen bytes or so")}, &opaque{}
	for _, k := range []struct {
		call func() (Reply, error)
		most float64
	}{
		{func() (Reply, error) { return c.Call(ctx, proc0, Auth{}, xdr.Void{}, xdr.Void{}) }, 0},
		{func() (Reply, error) { return c.Call(ctx, echoProc, Auth{}, args, res) }, 1}, // the handler's result
	} {
		if n := testing.AllocsPerRun(500, func() {
			r, err := k.call()
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		}); n > k.most {
			t.Errorf("%v allocations, of at most %v", n, k.most)
		}
	}
}

var proc0 = proc(procNull)

// BenchmarkObserve is what a call costs that is neither slow nor sampled, beside a server
// without Observe. One call in a hundred is sampled, by chance.
func BenchmarkObserve(b *testing.B) {
	var told int
	for _, k := range []struct {
		name string
		o    ServerOptions
	}{
		{"nobody", ServerOptions{}},
		{"slow", ServerOptions{Slow: time.Hour, Observe: func(Served) { told++ }}},
		{"sampled", ServerOptions{Slow: time.Hour, Observe: func(Served) { told++ }, Sample: func() bool { return rand.Uint64() < 1<<57 }}},
		{"told", ServerOptions{Slow: time.Hour, Observe: func(Served) { told++ }, Sample: always}},
	} {
		b.Run(k.name, func(b *testing.B) {
			cred, err := (&AuthSys{Machine: "here", UID: 1000}).Auth()
			if err != nil {
				b.Fatal(err)
			}
			c := &Call{
				s: &Server{o: k.o}, Proc: proc(procEcho), XID: 1, Remote: &net.TCPAddr{}, Auth: cred, began: 1,
				rec: &bufpool.Buffer{B: make([]byte, 100)}, reply: answered{buf: &bufpool.Buffer{B: make([]byte, 100)}},
			}
			b.ReportAllocs()
			for b.Loop() {
				c.observe(nil, time.Millisecond)
			}
		})
	}
}
