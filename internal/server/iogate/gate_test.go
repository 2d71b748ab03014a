//go:build linux

package iogate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func gate(t testing.TB, o Options) *Gate {
	t.Helper()
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s := g.Snapshot()
		err := g.Close()
		if err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if closes := int64(1); s.Inside != 0 || s.Waiting != 0 || g.waiting.Load() != closes {
			t.Errorf("left behind: %d inside, %d waiting (%d counted)", s.Inside, s.Waiting, g.waiting.Load()-closes)
		}
	})
	return g
}

func enter(t testing.TB, l *Lanes, c Class, n int) {
	t.Helper()
	for i := range n {
		if err := l.Enter(t.Context(), c, "client"); err != nil {
			t.Fatalf("place %d of %d, %v: %v", i, n, c, err)
		}
	}
}

func leave(l *Lanes, c Class, n int) {
	for range n {
		l.Leave(c)
	}
}

// TestBound counts the calls inside at once, of all lanes together.
func TestBound(t *testing.T) {
	const threads = 8
	g := gate(t, Options{Threads: threads, Patience: time.Minute})
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for w := range 64 {
		l, c := g.Export(fmt.Sprint(w%3)), Class(w%int(Classes))
		all.Go(func() {
			for range 300 {
				if err := l.Enter(t.Context(), c, fmt.Sprint(w)); err != nil {
					t.Error(err)
					return
				}
				n := inside.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				inside.Add(-1)
				l.Leave(c)
			}
		})
	}
	all.Wait()
	if m := most.Load(); m > threads {
		t.Errorf("%d were inside at once, the bound is %d", m, threads)
	}
	var entered uint64
	for _, e := range g.Snapshot().Exports {
		for _, n := range e.Lanes {
			entered += n.Entered
		}
	}
	if entered != 64*300 {
		t.Errorf("%d entries counted, of %d", entered, 64*300)
	}
}

// TestKept fills the gate with whatever all but one lane want, and finds a place
// in that one.
func TestKept(t *testing.T) {
	for _, exports := range []int{1, 2, 4} {
		for c := range Classes {
			t.Run(fmt.Sprintf("%d exports, %v", exports, c), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := gate(t, Options{Threads: 32})
					var lanes []*Lanes
					for i := range exports {
						lanes = append(lanes, g.Export(fmt.Sprint(i)))
					}
					ctx, cancel := context.WithCancel(t.Context())
					var all sync.WaitGroup
					for i, l := range lanes {
						for other := range Classes {
							if i == 0 && other == c {
								continue
							}
							for range 40 {
								all.Go(func() {
									if l.Enter(ctx, other, "greedy") == nil {
										<-ctx.Done()
										l.Leave(other)
									}
								})
							}
						}
					}
					synctest.Wait()
					if g.Snapshot().Waiting == 0 {
						t.Fatal("the gate is not full")
					}
					if err := lanes[0].Enter(t.Context(), c, "modest"); err != nil {
						t.Fatal(err)
					}
					if w := g.Snapshot().Exports[0].Lanes[c].Waited; w != 0 {
						t.Errorf("waited for %v", w)
					}
					lanes[0].Leave(c)
					cancel()
					all.Wait()
				})
			})
		}
	}
}

// TestTurns lets a client with many waiting and one with few queue up: they take
// turns, and each is served in its own order.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Threads: MinThreads})
		l := g.Export("e")
		enter(t, l, Read, 1)
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		come := func(client string, n int) {
			for i := range n {
				all.Go(func() {
					if err := l.Enter(t.Context(), Read, client); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					order = append(order, fmt.Sprint(client, i))
					mu.Unlock()
					l.Leave(Read)
				})
				synctest.Wait()
			}
		}
		come("a", 5)
		come("b", 2)
		come("c", 1)
		l.Leave(Read)
		all.Wait()
		if want := []string{"a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"}; !slices.Equal(order, want) {
			t.Errorf("served as %v, want %v", order, want)
		}
	})
}

// TestLanesByTurns has lanes that all want the same place take turns, however
// many wait in one of them.
func TestLanesByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Threads: 2 * MinThreads})
		one, two := g.Export("one"), g.Export("two") // they share what is kept: one for each class
		for c := range Classes {
			enter(t, one, c, 1)
		}
		enter(t, one, Sync, MinThreads)
		var order []string
		var all sync.WaitGroup
		come := func(l *Lanes, c Class, n int) {
			for range n {
				all.Go(func() {
					if err := l.Enter(t.Context(), c, "client"); err != nil {
						t.Error(err)
						return
					}
					order = append(order, l.name+" "+c.String()) // one at a time
					l.Leave(c)
				})
			}
			synctest.Wait()
		}
		come(one, Sync, 3)
		come(one, Read, 2)
		come(two, Sync, 1)
		one.Leave(Sync)
		all.Wait()
		want := []string{"one sync", "one read", "two sync", "one sync", "one read", "one sync"}
		if !slices.Equal(order, want) {
			t.Errorf("let in as %v, want %v", order, want)
		}
		for c := range Classes {
			leave(one, c, 1)
		}
		leave(one, Sync, MinThreads-1)
	})
}

// TestExportsComeAndGo has exports of ever other names, as reloads may: what is
// gone leaves nothing behind, and what was kept for it is kept for others.
func TestExportsComeAndGo(t *testing.T) {
	g := gate(t, Options{Threads: 16})
	stays := g.Export("stays")
	for i := range 1000 {
		l := g.Export(fmt.Sprint(i))
		if l.cell == stays.cell || g.Export(fmt.Sprint(i)) != l {
			t.Fatal("an export has its places with another, or twice")
		}
		l.Close()
		if n := len(g.Snapshot().Exports); n != 2 {
			t.Fatalf("%d exports while one of two still uses the second", n)
		}
		l.Close()
	}
	if n, cells := len(g.Snapshot().Exports), len(g.cells); n != 1 || cells != 2 {
		t.Errorf("%d exports, and places kept for %d", n, cells)
	}
}

// TestShares holds what is kept, for any number of threads and exports, against
// what there is: something for each class, and never more than half, or one each.
func TestShares(t *testing.T) {
	for threads := MinThreads; threads < 300; threads++ {
		g := gate(t, Options{Threads: threads})
		for exports := range 40 {
			g.Export(fmt.Sprint(exports))
			kept := 0
			for _, c := range g.cells {
				for i := range c.units {
					if c.units[i].kept < 1 {
						t.Fatalf("%d threads, %d exports: nothing kept for %v", threads, exports+1, Class(i))
					}
					kept += int(c.units[i].kept)
				}
			}
			if kept > max(MinThreads, threads/keptShare) || g.fast.Load() != int64(threads-kept) {
				t.Fatalf("%d threads, %d exports: %d kept, %d for all", threads, exports+1, kept, g.fast.Load())
			}
		}
	}
}

// TestReload gets the same lanes again, with what they have counted.
func TestReload(t *testing.T) {
	g := gate(t, Options{})
	enter(t, g.Export("e"), Meta, 3)
	leave(g.Export("e"), Meta, 3)
	if s := g.Snapshot(); len(s.Exports) != 1 || s.Exports[0].Lanes[Meta].Entered != 3 || s.Bound != DefaultThreads {
		t.Errorf("%+v", s)
	}
}

// TestWaits finds waits in the bucket of their length.
func TestWaits(t *testing.T) {
	for _, d := range []time.Duration{0, time.Microsecond, 3 * time.Millisecond, time.Hour} {
		var c counts
		c.wait(d)
		i := slices.Index(c.waits[:], 1)
		if i > 0 && d < WaitBound(i-1) || i < WaitBuckets-1 && d >= WaitBound(i) || c.waited != d {
			t.Errorf("%v is in the bucket below %v", d, WaitBound(i))
		}
	}
}

// TestPatience waits for as long as the patience lasts, and no longer.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Threads: MinThreads})
		l := g.Export("e")
		enter(t, l, Sync, 1)
		start := time.Now()
		if err := l.Enter(t.Context(), Sync, "b"); !errors.Is(err, ErrFull) {
			t.Errorf("error %v, want ErrFull", err)
		}
		if d := time.Since(start); d != DefaultPatience {
			t.Errorf("refused after %v", d)
		}
		n := g.Snapshot().Exports[0].Lanes[Sync]
		if n.Late != 1 || n.Full != 0 || n.Refused() != 1 || n.Entered != 1 {
			t.Errorf("counted %+v", n)
		}
		l.Leave(Sync)
	})
}

// TestTryEnter takes a place that is there for the lane, and does not wait for others,
// nor pass what waits.
func TestTryEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Threads: MinThreads})
		l := g.Export("e")
		if !l.TryEnter(Meta) || l.TryEnter(Meta) || !l.TryEnter(Read) {
			t.Error("of each lane, one has a place")
		}
		waits := make(chan error)
		go func() { waits <- l.Enter(t.Context(), Meta, "b") }()
		synctest.Wait()
		if n := g.Snapshot(); n.Inside != 2 || n.Exports[0].Lanes[Meta].Waiting != 1 {
			t.Errorf("%+v", n)
		}
		l.Leave(Meta)
		if l.TryEnter(Meta) {
			t.Error("the try has passed what waits")
		}
		if err := <-waits; err != nil {
			t.Error(err)
		}
		l.Leave(Meta)
		l.Leave(Read)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if l.TryEnter(Meta) {
			t.Error("a place of a gate that is closed")
		}
	})
}

// TestQueue refuses at once a call that finds the queue full, and one of a client that
// waits already a little earlier.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 16
		g := gate(t, Options{Threads: MinThreads, Queue: most})
		l := g.Export("e")
		enter(t, l, Write, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		come := func(client string, n int) {
			for range n {
				all.Go(func() {
					if err := l.Enter(ctx, Write, client); !errors.Is(err, context.Canceled) {
						t.Errorf("error %v", err)
					}
				})
			}
			synctest.Wait()
		}
		refused := func(client string) {
			t.Helper()
			start := time.Now()
			if err := l.Enter(ctx, Write, client); !errors.Is(err, ErrFull) || time.Since(start) != 0 {
				t.Errorf("%s: error %v after %v", client, err, time.Since(start))
			}
		}
		come("greedy", most-most/lastShare)
		refused("greedy")
		come("modest", 1)
		come("meek", 1)
		refused("latecomer")
		if n := g.Snapshot().Exports[0].Lanes[Write]; n.Full != 2 || n.Waiting != most {
			t.Errorf("counted %+v", n)
		}
		cancel()
		all.Wait()
		if n := g.Snapshot().Exports[0].Lanes[Write]; n.Cancelled != most || n.Waiting != 0 {
			t.Errorf("counted %+v", n)
		}
		l.Leave(Write)
	})
}

// TestCancelStorm cancels waiters while places come and go: none is lost.
func TestCancelStorm(t *testing.T) {
	g := gate(t, Options{Threads: MinThreads, Patience: time.Minute})
	l := g.Export("e")
	var all sync.WaitGroup
	for w := range 32 {
		all.Go(func() {
			for i := range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if (w+i)%3 == 0 {
					go cancel()
				}
				if l.Enter(ctx, Class(i%int(Classes)), fmt.Sprint(w%5)) == nil {
					l.Leave(Class(i % int(Classes)))
				}
				cancel()
			}
		})
	}
	all.Wait()
	for c := range Classes {
		enter(t, l, c, 1)
		l.Leave(c)
	}
}

// TestClose sends away calls that wait, and waits for those inside.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, Options{Threads: MinThreads})
		l := g.Export("e")
		enter(t, l, Read, 1)
		waits, closed := make(chan error, 1), make(chan error, 1)
		go func() { waits <- l.Enter(t.Context(), Read, "b") }()
		synctest.Wait()
		go func() { closed <- g.Close() }()
		if err := <-waits; !errors.Is(err, ErrClosed) {
			t.Errorf("the wait ended with %v", err)
		}
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("closed with one inside: %v", err)
		default:
		}
		if err := l.Enter(t.Context(), Meta, "c"); !errors.Is(err, ErrClosed) {
			t.Errorf("who came too late got %v", err)
		}
		l.Leave(Read)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err := g.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("closed twice: %v", err)
		}
	})
}

func TestNone(t *testing.T) {
	g := gate(t, Options{Kind: None})
	l := g.Export("e")
	enter(t, l, Sync, 1000)
	leave(l, Sync, 1000)
	var open *Lanes
	enter(t, open, Sync, 1000)
	leave(open, Sync, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, l := range []*Lanes{l, open} {
		if err := l.Enter(ctx, Read, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled caller got %v", err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Kind: Kind(99)}, {Threads: -1}, {Threads: MinThreads - 1}, {Threads: MaxThreads + 1},
		{Priority: -1}, {Priority: DefaultThreads + 1}, {Queue: -1}, {Patience: -1},
	} {
		if g, err := New(o); err == nil {
			t.Errorf("%+v makes a gate", o)
			_ = g.Close()
		}
	}
	for k := range kinds {
		if got, err := ParseKind(k.String()); err != nil || got != k {
			t.Errorf("%v is parsed as %v, %v", k, got, err)
		}
	}
	for name, want := range map[string]string{"epoll": `"epoll" is not one of auto, none, go, c`, "uring": "use auto"} {
		if _, err := ParseKind(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestAllocations(t *testing.T) {
	l := gate(t, Options{}).Export("e")
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		if err := l.Enter(ctx, Read, "client"); err != nil {
			t.Error(err)
		}
		l.Leave(Read)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEnter(b *testing.B) {
	l := gate(b, Options{}).Export("e")
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_ = l.Enter(ctx, Read, "client")
		l.Leave(Read)
	}
}

func BenchmarkEnterParallel(b *testing.B) {
	l := gate(b, Options{}).Export("e")
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			_ = l.Enter(ctx, Read, "client")
			l.Leave(Read)
		}
	})
}

// BenchmarkEnterFull is the way through the queue: many more than places.
func BenchmarkEnterFull(b *testing.B) {
	l := gate(b, Options{Threads: MinThreads, Patience: time.Minute}).Export("e")
	ctx := b.Context()
	b.SetParallelism(256)
	b.ReportAllocs()
	var clients atomic.Int64
	b.RunParallel(func(p *testing.PB) {
		client := fmt.Sprint(clients.Add(1))
		for p.Next() {
			_ = l.Enter(ctx, Read, client)
			l.Leave(Read)
		}
	})
}
