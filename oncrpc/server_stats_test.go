package oncrpc

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestServerProcs counts calls by procedure.
func TestServerProcs(t *testing.T) {
	srv, addr := startServer(t, newService(), ServerOptions{Replies: NewTestCache()})
	if n := len(srv.Procs()); n != 0 {
		t.Errorf("%d procedures before the first call", n)
	}
	r := dialRaw(t, addr)
	ask := func(msg []byte) (out uint64) {
		r.send(record(msg))
		_, results, err := r.reply()
		if err != nil && !isAnswer(err) {
			t.Fatal(err)
		}
		return uint64(24 + len(results))
	}
	var in, out uint64
	for range 3 {
		msg := message(1, procOnce, str("x")) // the second and the third are replayed
		in, out = in+uint64(len(msg)), out+ask(msg)
	}
	ask(message(2, procNull, nil))
	ask(message(3, procFail, str("")))
	bulk := ask(message(4, procRead, words(1, 10000)))
	waitFor(t, "the numbers", func() bool { return len(srv.Procs()) == 4 })
	for i, want := range []ProcServerStats{
		{Calls: 1, BytesIn: 40, BytesOut: 24},
		{Calls: 1, BytesIn: 48, BytesOut: bulk},
		{Calls: 3, BytesIn: in, BytesOut: out},
		{Calls: 1, Errors: 1, BytesIn: 44, BytesOut: 24},
	} {
		got := srv.Procs()[i]
		if number := []uint32{procNull, procRead, procOnce, procFail}[i]; got.Proc.Number != number {
			t.Errorf("procedure %d stands where %d should", got.Proc.Number, number)
		}
		if got.Latency.Count != want.Calls || got.Latency.Max == 0 {
			t.Errorf("%v: latency of %d calls, at most %d", got.Proc, got.Latency.Count, got.Latency.Max)
		}
		got.Proc, got.Latency = nil, nil
		if got != want {
			t.Errorf("procedure %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestServerSlow: calls that take long are reported, with the time they took;
// others are not.
func TestServerSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		slow := make(chan Served, 10)
		srv, l, stop := startPipeServer(t, s, ServerOptions{
			IdleTimeout: time.Hour, Slow: time.Second, Observe: func(s Served) { slow <- s },
		})
		defer stop()
		nc, err := l.dial()
		if err != nil {
			t.Fatal(err)
		}
		r := newRaw(t, nc)
		for i, took := range []time.Duration{0, time.Second - 1, time.Second, time.Minute} {
			if err := nc.SetDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			r.send(record(message(uint32(i), procWait, nil)))
			synctest.Wait()
			time.Sleep(took)
			s.gate <- struct{}{}
			r.mustReply(uint32(i))
			synctest.Wait()
			if took < time.Second {
				continue
			}
			got := <-slow
			if got.Proc.Number != procWait || got.XID != uint32(i) || got.Took != took || got.Waited != 0 || got.Client.String() != "pipe" {
				t.Errorf("%+v, want %v", got, took)
			}
		}
		if len(slow) != 0 {
			t.Errorf("%d calls too many are slow", len(slow))
		}
		if p := srv.Procs(); len(p) != 1 || p[0].Latency.Count != 4 || p[0].Latency.Max != uint64(time.Minute) {
			t.Errorf("%+v", p)
		}
		if err := nc.Close(); err != nil {
			t.Error(err)
		}
	})
}
