package oncrpc

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

// TestServerWork sends many calls in one write. Some block, and some end the goroutine that
// executes them. All others are answered meanwhile, however few processors there are.
func TestServerWork(t *testing.T) {
	for _, procs := range []int{1, 2} {
		t.Run(fmt.Sprint(procs), func(t *testing.T) { manyCalls(t, procs) })
	}
}

func manyCalls(t *testing.T, procs int) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	s := newService()
	srv, addr := startServer(t, s, ServerOptions{})
	r := dialRaw(t, addr)
	const rounds, kinds = 20, 5
	var calls []byte
	for i := range uint32(rounds) {
		for k, msg := range [kinds][]byte{
			message(i*kinds, procEcho, str("before")),
			message(i*kinds+1, procWait, nil),
			message(i*kinds+2, procEcho, str("after")),
			message(i*kinds+3, procFail, str("exit")),
			message(i*kinds+4, procNull, nil),
		} {
			if k != 1 || i%4 == 0 {
				calls = append(calls, record(msg)...)
			}
		}
	}
	r.send(calls)
	seen := make(map[uint32]bool)
	for range rounds * (kinds - 1) {
		xid, results, err := r.reply()
		if err != nil && !isAnswer(err) {
			t.Fatal(err)
		}
		if xid%kinds == 2 && !bytes.Equal(results, str("after")) {
			t.Errorf("the reply to %d is %q", xid, results)
		}
		seen[xid] = true
	}
	for xid := range seen {
		if xid%kinds == 1 {
			t.Errorf("call %d has not waited", xid)
		}
	}
	close(s.gate)
	for range rounds / 4 {
		if xid, _, err := r.reply(); err != nil || xid%kinds != 1 || seen[xid] {
			t.Errorf("reply to %d: %v", xid, err)
		}
	}
	if st := srv.Stats(); len(seen) != rounds*(kinds-1) || st.Calls != rounds*(kinds-1)+rounds/4 {
		t.Errorf("%d replies, %+v", len(seen), st)
	}
}

// TestServerQueue: the queue of a connection's workers is in order of arrival, and takes no
// more room than the calls in it.
func TestServerQueue(t *testing.T) {
	sc := &serverConn{s: &Server{}, pending: true}
	sc.worker = func() {}
	var next, last uint32
	for round := range 1000 {
		for range 3 - round%2 {
			sc.begin(&Call{XID: last})
			last++
		}
		for range 2 + round%2 {
			c := sc.next(false)
			if c == nil || c.XID != next {
				t.Fatalf("after %d comes %+v", next-1, c)
			}
			next++
		}
	}
	if len(sc.ready)-sc.taken != int(last-next) || cap(sc.ready) > 16 {
		t.Errorf("%d calls wait in a queue of %d", last-next, cap(sc.ready))
	}
}
