package oncrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/xdr"
)

// packets is a listener on which each system call that writes is one packet.
func packets(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("unixpacket", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Skipf("no packets on this system: %v", err)
	}
	return l
}

// wholeRecord checks that p is one record in one fragment.
func wholeRecord(t *testing.T, p []byte) []byte {
	t.Helper()
	if len(p) < markBytes || binary.BigEndian.Uint32(p) != lastFragment|uint32(len(p)-markBytes) {
		t.Fatalf("%d bytes beginning with %x are no record", len(p), p[:min(len(p), 16)])
	}
	return p[markBytes:]
}

// TestOneWritePerCall: a call leaves in one write, with and without bulk.
func TestOneWritePerCall(t *testing.T) {
	noLeaks(t)
	l := packets(t)
	defer func() { _ = l.Close() }() // nothing hangs on it
	c := newClient(t, ClientOptions{Dial: func(context.Context) (net.Conn, error) {
		return net.Dial("unixpacket", l.Addr().String())
	}})
	accepted := make(chan net.Conn, 1)
	go func() {
		if nc, err := l.Accept(); err == nil {
			accepted <- nc
		}
		close(accepted)
	}()
	var nc net.Conn
	for _, size := range []int{0, 100, inlineBulk, inlineBulk + 1, 60000} {
		ctx, cancel := context.WithCancel(t.Context())
		done := begin(func() error {
			_, err := c.Call(ctx, proc(procWrite), Auth{}, &writeArgs{Name: []byte("n"), Data: make([]byte, size)}, &writeRes{})
			return err
		})
		if nc == nil {
			if nc = <-accepted; nc == nil {
				t.Fatal("no connection")
			}
			defer func() { _ = nc.Close() }() // nothing hangs on it
		}
		p := make([]byte, 1<<20)
		n, err := nc.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		wholeRecord(t, p[:n])
		cancel()
		if err := await(t, done); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// TestOneWritePerReply: a reply leaves in one write, with and without bulk.
func TestOneWritePerReply(t *testing.T) {
	noLeaks(t)
	s := newService()
	checkPool(t, s)
	srv, err := NewServer([]Service{s.service()}, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := packets(t)
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	nc, err := net.Dial("unixpacket", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }() // nothing hangs on it
	p := make([]byte, 1<<20)
	for _, size := range []uint32{0, 100, inlineBulk, inlineBulk + 1, 60000} {
		for _, msg := range [][]byte{message(1, procRead, words(1, size)), message(1, procEcho, xdr.AppendOpaque(nil, make([]byte, min(size, 5000))))} {
			if _, err := nc.Write(record(msg)); err != nil {
				t.Fatal(err)
			}
			n, err := nc.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			if rec := wholeRecord(t, p[:n]); binary.BigEndian.Uint32(rec) != 1 {
				t.Fatalf("reply to %x", rec[:4])
			}
		}
	}
}

// TestOneReadPerPage: a page comes with its head in one read. Of a packet the system keeps nothing for a second one.
func TestOneReadPerPage(t *testing.T) {
	noLeaks(t)
	s := newService()
	checkPool(t, s)
	srv, err := NewServer([]Service{s.service()}, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := packets(t)
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := newClient(t, ClientOptions{Dial: func(context.Context) (net.Conn, error) {
		return net.Dial("unixpacket", l.Addr().String())
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // the rest would be waited for
	defer cancel()
	res := readRes{Data: make([]byte, 4<<10)}
	r, err := c.Call(ctx, proc(procRead), Auth{}, &readArgs{Count: 4 << 10}, &res)
	r.Release()
	if err != nil || len(res.Data) != 4<<10 {
		t.Errorf("%d bytes, %v", len(res.Data), err)
	}
}

// TestGrouped: calls and replies that gather leave together.
func TestGrouped(t *testing.T) {
	noLeaks(t)
	s := newService()
	srv, err := NewServer([]Service{s.service()}, ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := newPipeListener()
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}()
	writes := &writeCounter{}
	c := newClient(t, ClientOptions{Dial: func(context.Context) (net.Conn, error) {
		nc, err := l.dial()
		writes.Conn = nc
		return writes, err
	}})
	if err := callEcho(t.Context(), c, procEcho, "first"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const callers, calls = 64, 50
	for range callers {
		wg.Go(func() {
			for range calls {
				if err := callEcho(t.Context(), c, procEcho, "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := writes.count(); n > callers*calls/4 {
		t.Errorf("%d writes for %d calls", n, callers*calls)
	}
}

// writeCounter counts the writes on a connection.
type writeCounter struct {
	net.Conn
	mu sync.Mutex
	n  int
}

func (w *writeCounter) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
	return w.Conn.Write(p)
}

func (w *writeCounter) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// TestNoNagleStall: with one call at a time, each message is one write, and none waits for a
// delayed acknowledgement even with TCP_NODELAY off. Such a stall takes 40 ms, and comes in
// most round trips. Slow ones are also a busy machine: it may have several tries.
func TestNoNagleStall(t *testing.T) {
	const trips, tries = 200, 20
	slow := make([]int, tries)
	for try := range tries {
		if slow[try] = slowTrips(t, trips); slow[try] <= trips/4 {
			return
		}
	}
	t.Errorf("of %d round trips more than 30 ms were taken by %v", trips, slow)
}

// slowTrips is how many of so many round trips take more than 30 ms.
func slowTrips(t *testing.T, trips int) (slow int) {
	t.Helper()
	_, _, c := pair(t, ServerOptions{nagle: true}, ClientOptions{nagle: true})
	for i := range trips {
		start := time.Now()
		var err error
		switch i % 3 {
		case 0:
			err = callEcho(t.Context(), c, procEcho, "x")
		case 1:
			err = readBulk(t, c, 10000, 10000)
		case 2:
			err = writeBulk(t, c, 10000)
		}
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(start) > 30*time.Millisecond {
			slow++
		}
	}
	return slow
}

// TestNoAllocations: a small call costs none, at either end.
func TestNoAllocations(t *testing.T) {
	need.Speed(t, "it allocates")
	_, _, c := pair(t, ServerOptions{}, ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, cred := proc(procNull), Auth{}
	args, res := &opaque{b: []byte("sixteen bytes or so")}, &opaque{}
	buf := make([]byte, 8192)
	rargs, rres := &readArgs{Seed: 1, Count: uint32(len(buf))}, &readRes{}
	for _, k := range []struct {
		name string
		call func() (Reply, error)
		most float64
	}{
		{"NULL, answered by the server itself", func() (Reply, error) {
			return c.Call(ctx, p, cred, xdr.Void{}, xdr.Void{})
		}, 0},
		// At the server: the handler's result.
		{"ECHO", func() (Reply, error) { return c.Call(ctx, echoProc, cred, args, res) }, 1},
		{"READ", func() (Reply, error) {
			rres.Data = buf
			return c.Call(ctx, readProc, cred, rargs, rres)
		}, 4},
	} {
		n := testing.AllocsPerRun(500, func() {
			r, err := k.call()
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		})
		if n > k.most {
			t.Errorf("%s: %v allocations", k.name, n)
		}
		t.Logf("%s: %v allocations", k.name, n)
	}
	if procs := c.Procs(); len(procs) != 3 || procs[0].Latency.Count < 500 || procs[0].Queued.Count < 500 {
		t.Errorf("counted %d procedures", len(procs))
	}
}

var echoProc, readProc = proc(procEcho), proc(procRead)

// TestCancelStorm has many callers that cancel at random, over sockets and over pipes. No
// buffer is touched after Call has returned, and no call fails that is not cancelled.
func TestCancelStorm(t *testing.T) {
	s := newService()
	srv, addr := startServer(t, s, ServerOptions{})
	pipes := newPipeListener()
	go func() { _ = srv.Serve(pipes) }() // ends with Close
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"tcp":  dialTo(addr),
		"pipe": func(context.Context) (net.Conn, error) { return pipes.dial() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, ClientOptions{Dial: dial})
			var wg sync.WaitGroup
			for g := range 24 {
				wg.Go(func() { storm(t, c, rand.New(rand.NewPCG(1, uint64(g)))) })
			}
			wg.Wait()
			if st := c.Stats(); st.Dials != 1 || st.Cancelled == 0 || st.Stray != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func storm(t *testing.T, c *Client, rnd *rand.Rand) {
	buf, want := make([]byte, 300<<10), make([]byte, 300<<10)
	poison := bytes.Repeat([]byte{0xcc}, len(buf))
	// A caller's wish to leave is seen at a tick of the client's clock, and most
	// calls here are shorter: it goes on until some have left.
	for round := 0; round < 40 || round < 4000 && c.Stats().Cancelled < 20; round++ {
		n := rnd.IntN(len(buf))
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		leaves := rnd.IntN(2) == 0
		if leaves {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(2000))*time.Microsecond)
		}
		err := stormCall(ctx, c, rnd.IntN(3), buf[:n], want[:n])
		cancel()
		if err != nil && (!leaves || !errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("a call fails: %v", err)
			return
		}
		// A goroutine that still reads or writes here is found by the race detector, or
		// by what the server and the other callers receive.
		copy(buf, poison)
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Microsecond)
		if !bytes.Equal(buf, poison) {
			t.Error("the buffer was touched after the return")
			return
		}
	}
}

func stormCall(ctx context.Context, c *Client, kind int, buf, want []byte) error {
	n := len(buf)
	pattern(want, uint32(n))
	switch kind {
	case 0:
		return callEcho(ctx, c, procEcho, fmt.Sprint("echo of ", n))
	case 1:
		res := readRes{Data: buf}
		r, err := c.Call(ctx, readProc, Auth{}, &readArgs{Seed: uint32(n), Count: uint32(n)}, &res)
		defer r.Release()
		if err == nil && (!bytes.Equal(res.Data, want) || res.Tail != uint32(n)) {
			return errors.New("wrong data")
		}
		return err
	}
	copy(buf, want)
	var res writeRes
	r, err := c.Call(ctx, proc(procWrite), Auth{}, &writeArgs{Data: buf}, &res)
	r.Release()
	if err == nil && (res.Sum != sum(want) || res.Count != uint32(n)) {
		return errors.New("the server got other data")
	}
	return err
}
