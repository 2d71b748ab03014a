package view

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestBusyGreed: one who makes calls under ever new names displaces those that have done
// least, and none of those that are busy.
func TestBusyGreed(t *testing.T) {
	var b busy
	b.init()
	const regulars = maxBusyClients - 1
	for round := range 3 {
		for i := range regulars {
			for range 20 {
				b.clients.add(fmt.Sprint("regular", i), 1, &Call{})
			}
		}
		for i := range 20_000 {
			b.clients.add(fmt.Sprint("greedy", round, i), 1e-6, &Call{})
		}
		if n := len(b.clients.entries); n != maxBusyClients {
			t.Fatalf("%d clients are known", n)
		}
	}
	for i := range regulars {
		if b.clients.entries[fmt.Sprint("regular", i)] == nil {
			t.Errorf("regular%d is displaced", i)
		}
	}
}

// TestBusyForgets: who does nothing any more is forgotten.
func TestBusyForgets(t *testing.T) {
	var b busy
	b.init()
	b.add(&Call{Client: "one", File: "x", Took: time.Millisecond})
	for range 10 * int(halfLife/DefaultEvery) {
		b.turn(DefaultEvery.Seconds())
	}
	if len(b.clients.entries)+len(b.files.entries) > 0 {
		t.Errorf("%v, %v", b.clients.entries, b.files.entries)
	}
}

// TestBusyShare: however many calls there are, few are looked at, and the rates are about
// right.
func TestBusyShare(t *testing.T) {
	const seconds, calls = 2, 2_000_000
	var b busy
	b.init()
	random := rand.New(rand.NewPCG(1, 2))
	for interval := range 3 {
		picked := 0
		for i := range calls {
			if random.Uint64() > b.below.Load() {
				continue
			}
			picked++
			client := "most"
			if i%10 == 0 {
				client = "few"
			}
			b.add(&Call{Client: client, File: "f", BytesIn: 100, Took: time.Millisecond})
		}
		bound := 3 * samples
		if interval == 0 {
			bound = int(samples * (2 + math.Log2(calls/samples))) // until the share is found
		}
		if picked > bound || picked < samples/4 {
			t.Errorf("interval %d: %d calls are looked at", interval, picked)
		}
		clients, files := b.turn(seconds)
		rates := make(map[string]heavyRow)
		for _, r := range append(clients, files...) {
			rates[r.name] = r
		}
		for name, want := range map[string]float64{"most": 0.9 * calls / seconds, "few": 0.1 * calls / seconds, "f": calls / seconds} {
			r := rates[name]
			if off := math.Abs(r.calls/want - 1); off > 0.35 || math.Abs(r.in/100/r.calls-1) > 1e-9 {
				t.Errorf("interval %d: %s has %.0f calls a second and %.0f bytes; want %.0f calls", interval, name, r.calls, r.in, want)
			}
		}
	}
	for range 2 {
		b.turn(seconds)
	}
	if b.below.Load() != math.MaxUint64 {
		t.Error("of a quiet server not all calls are looked at")
	}
}

// TestBusyP99 is right to within an eighth.
func TestBusyP99(t *testing.T) {
	for d := time.Microsecond; d < 8*time.Second; d = d * 17 / 16 {
		var h heavy
		h.most = 1
		for range 98 {
			h.add("x", 1, &Call{Took: d / 2})
		}
		e := h.add("x", 1, &Call{Took: d})
		h.add("x", 1, &Call{Took: d})
		if got := e.p99(); math.Abs(got/d.Seconds()-1) > 0.13 {
			t.Fatalf("%v: %v", d, got)
		}
	}
	var h heavy
	h.most = 1
	for _, d := range []time.Duration{-1, 0, math.MaxInt64} {
		h.add("x", 1, &Call{Took: d})
	}
	if (&entry{}).p99() != 0 {
		t.Error("without calls there is a time")
	}
}

// TestForemost has those who are first by any order.
func TestForemost(t *testing.T) {
	type row struct{ a, b float64 }
	rows := []row{{1, 9}, {2, 8}, {3, 0}, {9, 1}, {0, 0}}
	got := foremost(rows, 3, func(r *row) float64 { return r.a }, func(r *row) float64 { return r.b })
	if len(got) != 3 || got[0] != rows[3] || got[1] != rows[0] || got[2] != rows[2] {
		t.Errorf("%v", got)
	}
	if got := foremost(rows, 9); len(got) != len(rows) {
		t.Errorf("%v", got)
	}
}

// TestWhoAndWhat joins what connections count and what a sample says.
func TestWhoAndWhat(t *testing.T) {
	f := newFake()
	known := true
	o := f.options()
	o.NameFile = func(file string) (string, bool) {
		if known {
			return "/data/" + file, true
		}
		return "handle " + file, false
	}
	f.s.Clients = []Client{{Name: "192.0.2.7", Conns: 2, InFlight: 3, Calls: 1000, BytesIn: 5000}}
	v := New(o)
	f.work()
	f.s.Clients = []Client{{Name: "192.0.2.7", Conns: 2, InFlight: 3, Calls: 1200, BytesIn: 5800}, {Name: "1000@127.0.0.1", User: "1000", Conns: 1}}
	v.Count(Call{Client: "192.0.2.7", User: "0", File: "x", Took: time.Millisecond, BytesIn: 10})
	v.Count(Call{Client: "192.0.2.9", User: "backup", File: "y", Took: time.Second, BytesOut: 2000})
	v.step()
	got := v.Frame(0)
	if len(got.Clients) != 3 || len(got.Files) != 2 {
		t.Fatalf("%+v, %+v", got.Clients, got.Files)
	}
	first := got.Clients[0]
	if p := first.P99; p < 0.0008 || p > 0.0012 {
		t.Errorf("p99 %v", p)
	}
	first.P99 = 0
	if want := (ClientFrame{Client: "192.0.2.7", User: "0", Conns: 2, InFlight: 3, Rate: 100, In: 400, File: "/data/x"}); first != want {
		t.Errorf("%+v, want %+v", first, want)
	}
	if c := got.Clients[1]; c.Client != "192.0.2.9" || c.User != "backup" || c.Rate != 0.5 || c.Out != 1000 || c.File != "/data/y" {
		t.Errorf("%+v", c)
	}
	if x := got.Files[0]; x.File != "/data/y" || x.Client != "192.0.2.9" || x.Out != 1000 {
		t.Errorf("%+v", x)
	}
	known = false // closed meanwhile
	f.work()
	v.step()
	if x := v.Frame(0).Files[0]; x.File != "/data/y" && x.File != "/data/x" || x.Rate != 0 {
		t.Errorf("%+v", x)
	}
}

// TestManyClients bounds the rows, and says how many are left out.
func TestManyClients(t *testing.T) {
	f := newFake()
	f.s.Clients = nil
	for i := range 3 * maxClients {
		f.s.Clients = append(f.s.Clients, Client{Name: fmt.Sprint(i)})
	}
	v := New(f.options())
	if got := v.Frame(0); len(got.Clients) != maxClients || got.Left != 2*maxClients {
		t.Errorf("%d rows, %d left out", len(got.Clients), got.Left)
	}
}

// BenchmarkPick is what every call pays, and BenchmarkCount what a sampled one does.
func BenchmarkPick(b *testing.B) {
	v := New(newFake().options())
	v.busy.below.Store(leastShare)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if rand.Uint64() <= v.Share() {
				v.Count(Call{Client: "x"})
			}
		}
	})
}

func BenchmarkCount(b *testing.B) {
	v := New(newFake().options())
	names := make([]string, 4096)
	for i := range names {
		names[i] = fmt.Sprint("a file of some length, or a handle ", i)
	}
	for i := 0; b.Loop(); i++ {
		v.busy.below.Store(math.MaxUint64)
		v.Count(Call{Client: "192.0.2.7", File: names[i%len(names)], Took: time.Millisecond})
	}
}
