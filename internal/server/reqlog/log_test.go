package reqlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/xdr"
)

var (
	read   = &xdr.Proc{Name: "NFSPROC3_READ", Program: 100003, Version: 3, Number: 6}
	client = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 999}
	call   = Call{Procedure: read, Client: client, XID: 7, HasXID: true, Took: 2 * time.Millisecond, Waited: time.Millisecond, BytesIn: 100, BytesOut: 4096}
)

// name is a name of a protocol without numbers.
type name string

func (n name) String() string { return string(n) }

// keep is a handler that keeps lines.
type keep struct {
	mu    sync.Mutex
	lines []string
	err   error
	wait  chan struct{} // if not nil, each line waits for one
	slog.Handler
	out bytes.Buffer
}

func newKeep() *keep {
	k := new(keep)
	k.Handler = slog.NewTextHandler(&k.out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})
	return k
}

func (k *keep) Handle(ctx context.Context, r slog.Record) error {
	if k.wait != nil {
		<-k.wait
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return k.err
	}
	k.out.Reset()
	err := k.Handler.Handle(ctx, r)
	k.lines = append(k.lines, strings.TrimSpace(k.out.String()))
	return err
}

// TestLines sees calls become lines.
func TestLines(t *testing.T) {
	k := newKeep()
	l := New(Options{Handler: k})
	failed := call
	failed.Failed = true
	hostile := Call{Procedure: &xdr.Proc{Name: "a b\n\x1b"}}
	known := call
	known.HasUID, known.Status, known.BytesOut = true, name("NOT FOUND"), 1<<40
	named := Call{Procedure: name("Upload"), Client: name("192.0.2.7"), User: "ann"}
	for _, c := range []Call{call, failed, hostile, {}, known, named} {
		if !l.Wants() {
			t.Fatal("not wanted")
		}
		l.Put(c)
	}
	l.Close()
	l.Close()
	l.Put(call) // too late
	want := []string{
		`msg=call procedure=NFSPROC3_READ client=192.0.2.7:999 xid=7 took=2ms waited=1ms in=100 out=4096`,
		`msg=call procedure=NFSPROC3_READ client=192.0.2.7:999 xid=7 took=2ms waited=1ms in=100 out=4096 failed=true`,
		`msg=call procedure="a b\n\x1b" took=0s waited=0s in=0 out=0`,
		`msg=call procedure=unknown took=0s waited=0s in=0 out=0`,
		`msg=call procedure=NFSPROC3_READ client=192.0.2.7:999 uid=0 xid=7 took=2ms waited=1ms in=100 out=1099511627776 status="NOT FOUND"`,
		`msg=call procedure=Upload client=192.0.2.7 user=ann took=0s waited=0s in=0 out=0`,
	}
	if !slices.Equal(k.lines, want) {
		t.Errorf("%s", strings.Join(k.lines, "\n"))
	}
	if got := l.Stats(); got != (Stats{Written: 6}) {
		t.Errorf("%+v", got)
	}
	if (*Log)(nil).Wants() {
		t.Error("a log that is not there wants a call")
	}
}

// TestJSON sees that each line is an object.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	l := New(Options{Handler: slog.NewJSONHandler(&out, nil), Now: func() time.Time { return time.Unix(1, 0).UTC() }})
	l.Put(call)
	l.Close()
	var got struct {
		Time              time.Time
		Procedure, Client string
		XID               uint32
		Took, In, Out     int
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Client != "192.0.2.7:999" || got.Took != 2e6 || got.In != 100 || got.Out != 4096 || got.Time.Unix() != 1 {
		t.Errorf("%+v of %s", got, &out)
	}
}

// TestFull fills the queue while the writer waits, and sees that nobody else
// does, and that the loss is told.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeep()
		k.wait = make(chan struct{})
		l := New(Options{Handler: k, Queue: 4})
		for range 5 {
			l.Put(call)
			synctest.Wait() // the writer has the first
		}
		if n := testing.AllocsPerRun(100, func() { l.Put(call) }); n != 0 {
			t.Errorf("%v allocations for a call that is left out", n)
		}
		if got := l.Stats(); got.LeftOut != 101 {
			t.Errorf("%+v", got)
		}
		close(k.wait)
		synctest.Wait()
		l.Put(call)
		l.Close()
		if got := l.Stats(); got != (Stats{Written: 6, LeftOut: 101}) {
			t.Errorf("%+v", got)
		}
		told := slices.IndexFunc(k.lines, func(line string) bool { return strings.HasSuffix(line, " left_out=101") })
		if told < 0 || strings.Count(strings.Join(k.lines, "\n"), "left_out") != 1 {
			t.Errorf("%s", strings.Join(k.lines, "\n"))
		}
	})
}

// TestLeftOutAtTheEnd sees that a loss is told even if no call comes after it.
func TestLeftOutAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeep()
		l := New(Options{Handler: k, Lines: 2})
		for range 7 {
			l.Put(call)
		}
		synctest.Wait()
		l.Close()
		if len(k.lines) != 3 || k.lines[2] != `msg="calls left out" left_out=5` {
			t.Errorf("%s", strings.Join(k.lines, "\n"))
		}
	})
}

// TestPace writes no more lines a second than it may, and goes on in the next.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeep()
		l := New(Options{Handler: k, Lines: 10})
		for range 3 {
			for range 25 {
				l.Put(call)
			}
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if got := l.Stats(); got != (Stats{Written: 30, LeftOut: 45}) {
			t.Errorf("%+v", got)
		}
		l.Close()
		if !strings.HasSuffix(k.lines[10], " left_out=15") || k.lines[30] != `msg="calls left out" left_out=15` {
			t.Errorf("%s", strings.Join(k.lines, "\n"))
		}
	})
}

// TestIll sees that a handler's errors are counted, and told once.
func TestIll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeep()
		var told []error
		l := New(Options{Handler: k, Failed: func(err error) { told = append(told, err) }})
		for _, err := range []error{nil, errors.New("full"), errors.New("still full"), nil, errors.New("again")} {
			k.mu.Lock()
			k.err = err
			k.mu.Unlock()
			l.Put(call)
			synctest.Wait()
		}
		l.Close()
		if got := l.Stats(); got != (Stats{Written: 2, Failed: 3}) || fmt.Sprint(told) != "[full again]" {
			t.Errorf("%+v, %v", got, told)
		}
	})
}

// TestWants counts how many are wanted.
func TestWants(t *testing.T) {
	for _, c := range []struct {
		every int
		want  float64 // of 100,000
		off   float64
	}{{0, 1e5, 0}, {1, 1e5, 0}, {2, 5e4, 1500}, {100, 1e3, 300}, {math.MaxInt, 0, 1}} {
		seed := uint64(1)
		l := New(Options{Handler: newKeep(), Every: c.every, Rand: func() uint64 { // xorshift
			seed ^= seed << 13
			seed ^= seed >> 7
			seed ^= seed << 17
			return seed
		}})
		n := 0.0
		for range 100_000 {
			if l.Wants() {
				n++
			}
		}
		l.Close()
		if math.Abs(n-c.want) > c.off {
			t.Errorf("one in %d: %v of 100,000", c.every, n)
		}
	}
}

// TestAllocs is the promise to the data path.
func TestAllocs(t *testing.T) {
	l := New(Options{Handler: slog.DiscardHandler, Every: 1000})
	defer l.Close()
	if n := testing.AllocsPerRun(10_000, func() {
		if l.Wants() {
			l.Put(call)
		}
	}); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// BenchmarkNotWanted is what the log costs a call that it does not want: the
// bound is 150 ns.
func BenchmarkNotWanted(b *testing.B) {
	l := New(Options{Handler: slog.DiscardHandler, Every: math.MaxInt})
	defer l.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if l.Wants() {
				l.Put(call)
			}
		}
	})
}

// BenchmarkPut is what it costs one that is written, or left out.
func BenchmarkPut(b *testing.B) {
	l := New(Options{Handler: slog.DiscardHandler})
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l.Put(call)
	}
}
