package ops

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/reqlog"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
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

// TestErrorsInTheLog: an error has its text, in which no cause stands twice, and its code,
// whoever logs it, in every format. What an error explains has the text alone.
func TestErrorsInTheLog(t *testing.T) {
	gone := fmt.Errorf("the export: %w", vfs.ErrIO)
	for format, want := range map[string]string{
		"text": `msg=x error="the export: input/output error" code=EIO other=7 why="server closed"`,
		"json": `"msg":"x","error":"the export: input/output error","code":"EIO","other":7,"why":"server closed"`,
	} {
		var out strings.Builder
		log := slog.New(handler(&config.Log{Format: format}, &out, slog.LevelInfo))
		log.Error("x", slog.Any("error", errors.Join(gone, gone, gone)), slog.Int("other", 7), slog.Any("why", errors.New("server closed")))
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, &out)
		}
		out.Reset()
		log.With("listener", "l").Warn("accepting failed", "err", &net.OpError{Op: "accept", Err: syscall.EMFILE})
		if text := out.String(); !strings.Contains(text, "EMFILE") || strings.Count(text, "too many open files") != 1 {
			t.Errorf("%s: %s", format, text)
		}
	}
}
