package ops

import (
	"log/slog"
	"math"
	"net"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/reqlog"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// TestRequestOf takes a call to a procedure that is unknown, by a client likewise.
func TestRequestOf(t *testing.T) {
	got := requestOf(&oncrpc.Served{XID: 7, Failed: true})
	if want := (reqlog.Call{XID: 7, HasXID: true, Failed: true}); got != want {
		t.Errorf("%+v", got)
	}
}

// unlogged has a log of requests that wants hardly a call.
func unlogged(tb testing.TB) *Logs {
	l := &Logs{slow: newSlowLog(slog.New(slog.DiscardHandler), time.Now, time.Second)}
	l.requests = reqlog.New(reqlog.Options{Handler: slog.DiscardHandler, Every: math.MaxInt})
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// TestUnloggedAllocates spends nothing on calls that no log wants.
func TestUnloggedAllocates(t *testing.T) {
	l := unlogged(t)
	sample, call := l.Sample(), oncrpc.Served{Proc: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{}, Took: time.Microsecond}
	if n := testing.AllocsPerRun(1000, func() {
		call.Sampled = sample()
		l.Observe(call)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if (&Logs{}).Sample() != nil {
		t.Error("a server without a log of requests asks about each call")
	}
}

// BenchmarkUnlogged is what the log of requests costs a call that it does not want,
// from asking on: at most 150 ns. The server does not even tell of such a call, and
// what it takes to ask is in package oncrpc's BenchmarkObserve.
func BenchmarkUnlogged(b *testing.B) {
	l := unlogged(b)
	sample, call := l.Sample(), oncrpc.Served{Proc: nfs3.NFSPROC3_READ, Client: &net.TCPAddr{}, Took: time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		call.Sampled = sample()
		l.Observe(call)
	}
}
