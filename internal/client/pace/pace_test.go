package pace

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newFixed limits every class to n.
func newFixed(n int) *Limiter { return New(Options{Max: [Classes]int{n, n, n}}) }

func mustEnter(t testing.TB, l *Limiter, c Class) {
	t.Helper()
	if err := l.Enter(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestOnWait: a caller is told of the wait for its turn, and of the end of it however it ends, and
// of none if there is none.
func TestOnWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFixed(1)
		var told []bool
		watched := func(ctx context.Context) context.Context {
			told = nil
			return OnWait(ctx, func(waits bool) { told = append(told, waits) })
		}
		if err := l.Enter(watched(t.Context()), Write); err != nil || len(told) != 0 {
			t.Errorf("at once: %v, told %v", err, told)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Enter(watched(ctx), Write); err == nil || !slices.Equal(told, []bool{true, false}) {
			t.Errorf("in vain: %v, told %v", err, told)
		}
		done := make(chan error)
		go func() { done <- l.Enter(watched(t.Context()), Write) }()
		synctest.Wait()
		if !slices.Equal(told, []bool{true}) {
			t.Errorf("while it waits: told %v", told)
		}
		l.Leave(Write, time.Second, 0, OK)
		if err := <-done; err != nil || !slices.Equal(told, []bool{true, false}) {
			t.Errorf("admitted: %v, told %v", err, told)
		}
	})
}

// TestSetMax: a changed limit holds at once, for what waits already, too, and a limit that is found anew is
// found from the beginning.
func TestSetMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, first := range []int{2, 0} {
			l := newFixed(first)
			var in atomic.Int64
			for range 100 {
				go func() {
					mustEnter(t, l, Read)
					in.Add(1)
				}()
			}
			for _, n := range []int{3, 40, 20, 0} {
				l.SetMax(n)
				synctest.Wait()
				now := l.Snapshot()[Read]
				if n == 0 {
					n = firstLimit
				}
				if now.Limit != n || int64(now.InFlight) != in.Load() {
					t.Errorf("from %d: at %d it is %+v, with %d in", first, n, now, in.Load())
				}
				for in.Load() > int64(n) { // those above the limit go, and nobody follows
					in.Add(-1)
					l.Leave(Read, time.Millisecond, 0, OK)
					synctest.Wait()
				}
				if now = l.Snapshot()[Read]; now.InFlight != n {
					t.Errorf("from %d: then at %d it is %+v", first, n, now)
				}
			}
			l.SetMax(MaxLimit)
			synctest.Wait()
			for range in.Load() {
				l.Leave(Read, time.Millisecond, 0, OK)
			}
			if now := l.Snapshot()[Read]; now.InFlight != 0 || now.Waiting != 0 || now.Limit != MaxLimit {
				t.Errorf("in the end it is %+v", now)
			}
		}
	})
}

// TestFIFO: the first to come is the first to go, and classes do not wait for each other.
func TestFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFixed(2)
		mustEnter(t, l, Read)
		mustEnter(t, l, Read)
		var order []int
		var mu sync.Mutex
		for i := range 5 {
			go func() {
				mustEnter(t, l, Read)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		mustEnter(t, l, Write) // is not kept waiting
		if s := l.Snapshot(); s[Read] != (Snapshot{Limit: 2, InFlight: 2, Waiting: 5, Waits: 5}) || s[Write] != (Snapshot{Limit: 2, InFlight: 1}) {
			t.Errorf("%+v", s)
		}
		for range 7 {
			l.Leave(Read, time.Millisecond, 0, OK)
			synctest.Wait()
		}
		for i, got := range order {
			if got != i {
				t.Errorf("admitted in the order %v", order)
				break
			}
		}
		if s := l.Snapshot()[Read]; len(order) != 5 || s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%d admitted, then %+v", len(order), s)
		}
	})
}

// TestCancel: a call that gives up holds nothing, and those behind it go on.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFixed(1)
		mustEnter(t, l, Metadata)
		why := errors.New("enough")
		contexts := make([]context.Context, 3)
		cancels := make([]context.CancelCauseFunc, 3)
		results := make(chan error, 3)
		for i := range contexts {
			contexts[i], cancels[i] = context.WithCancelCause(t.Context())
			go func() { results <- l.Enter(contexts[i], Metadata) }()
			synctest.Wait()
		}
		cancels[1](why)
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("Enter returned %v", err)
		}
		if s := l.Snapshot()[Metadata]; s.Waiting != 2 {
			t.Errorf("%+v", s)
		}
		for range 2 {
			l.Leave(Metadata, 0, 0, OK)
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		l.Leave(Metadata, 0, 0, Gone)
		if err := l.Enter(contexts[1], Metadata); !errors.Is(err, context.Canceled) {
			t.Errorf("an ended context enters: %v", err)
		}
		if s := l.Snapshot()[Metadata]; s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%+v is held", s)
		}
		cancels[0](nil)
		cancels[2](nil)
	})
}

// TestCancelStorm cancels and admits at the same moments, and counts.
func TestCancelStorm(t *testing.T) {
	const limit, workers, rounds = 3, 32, 300
	l := newFixed(limit)
	var inside, most, admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 0))
			for range rounds {
				ctx, cancel := context.WithCancel(context.Background())
				if rnd.IntN(2) == 0 {
					go cancel()
				}
				if l.Enter(ctx, Write) == nil {
					admitted.Add(1)
					n := inside.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					inside.Add(-1)
					l.Leave(Write, time.Microsecond, 1, Outcome(rnd.IntN(4)))
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if s := l.Snapshot()[Write]; s.InFlight != 0 || s.Waiting != 0 || most.Load() > limit {
		t.Errorf("%+v, and there were %d inside", s, most.Load())
	}
	if admitted.Load() < workers*rounds/4 {
		t.Errorf("only %d of %d were admitted", admitted.Load(), workers*rounds)
	}
}

// TestConcurrent has an adaptive limiter used by all at once.
func TestConcurrent(t *testing.T) {
	l := New(Options{})
	var wg sync.WaitGroup
	for i := range 2 * MaxLimit {
		wg.Go(func() {
			for range 200 {
				c := Class(i % Classes)
				if err := l.Enter(context.Background(), c); err != nil {
					t.Error(err)
					return
				}
				l.Leave(c, time.Microsecond, 4096, OK)
			}
		})
	}
	for range 50 {
		for c, s := range l.Snapshot() {
			if s.Limit < minLimit || s.Limit > MaxLimit || s.InFlight < 0 {
				t.Errorf("%v: %+v", Class(c), s)
			}
		}
	}
	wg.Wait()
	for c, s := range l.Snapshot() {
		if s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%v: %+v is held", Class(c), s)
		}
	}
}

// TestFixed: a limit that is given stays, whatever happens.
func TestFixed(t *testing.T) {
	for max, want := range map[int]int{1: 1, 7: 7, 4096: 4096, -3: 1} {
		l := New(Options{Max: [Classes]int{Read: max}})
		for i := range 2000 {
			mustEnter(t, l, Read)
			l.Leave(Read, time.Duration(i)*time.Millisecond, 1<<20, Outcome(i%4))
		}
		s := l.Snapshot()
		if s[Read].Limit != want || s[Read].BackOffs != 0 {
			t.Errorf("Max %d: %+v", max, s[Read])
		}
		if s[Metadata].Limit != firstLimit {
			t.Errorf("a class without Max begins at %d", s[Metadata].Limit)
		}
	}
}

// TestBackOff: many refusals of calls that were under way together are one.
func TestBackOff(t *testing.T) {
	for _, tc := range []struct {
		outcome Outcome
		want    int
	}{{Busy, 5}, {Timeout, 3}, {Gone, firstLimit}} {
		l := New(Options{})
		for range firstLimit {
			mustEnter(t, l, Metadata)
		}
		for range firstLimit {
			l.Leave(Metadata, time.Millisecond, 0, tc.outcome)
		}
		// The limit of a trial's low half.
		if got := l.Snapshot()[Metadata]; got.Limit < tc.want || got.Limit > tc.want+2 || got.BackOffs > 1 {
			t.Errorf("outcome %d: %+v, want a limit of about %d", tc.outcome, got, tc.want)
		}
		for range 100 {
			mustEnter(t, l, Metadata)
			l.Leave(Metadata, time.Millisecond, 0, tc.outcome)
		}
		if got := l.Snapshot()[Metadata].Limit; got < minLimit || tc.outcome != Gone && got > minLimit+1 {
			t.Errorf("outcome %d, a hundred times: limit %d", tc.outcome, got)
		}
	}
}

// TestClocks: a clock that stands still, or is too coarse for round trips, breaks
// nothing.
func TestClocks(t *testing.T) {
	now := epoch
	for _, tick := range []time.Duration{0, time.Microsecond, 100 * time.Millisecond, time.Hour} {
		l := New(Options{Now: func() time.Time { now = now.Add(tick); return now }})
		for range 500 {
			limit := l.Snapshot()[Read].Limit
			for range limit {
				mustEnter(t, l, Read)
			}
			for range limit {
				l.Leave(Read, -1, -1, OK)
			}
			if limit < minLimit || limit > MaxLimit {
				t.Fatalf("limit %d", limit)
			}
		}
	}
}

// TestNoAllocation: a call that need not wait costs no memory.
func TestNoAllocation(t *testing.T) {
	l, ctx := New(Options{}), t.Context()
	if n := testing.AllocsPerRun(10_000, func() {
		if l.Enter(ctx, Read) == nil {
			l.Leave(Read, time.Millisecond, 4096, OK)
		}
	}); n != 0 {
		t.Errorf("Enter and Leave allocate %v times", n)
	}
}

func TestString(t *testing.T) {
	for c, want := range map[Class]string{Metadata: "metadata", Read: "read", Write: "write", 9: "class 9"} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func BenchmarkEnterLeave(b *testing.B) {
	l, ctx := New(Options{}), b.Context()
	for b.Loop() {
		if err := l.Enter(ctx, Read); err != nil {
			b.Fatal(err)
		}
		l.Leave(Read, time.Millisecond, 4096, OK)
	}
}
