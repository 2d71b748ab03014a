package oncrpc

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestBudget has many requests grow in steps at once. All get what they need,
// and never hold more together than the budget and one longest record.
func TestBudget(t *testing.T) {
	const limit, longest, workers = 100, 60, 40
	b := budget{free: limit}
	var out, most atomic.Int64
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(2, uint64(g)))
			for range 300 {
				var a allowance
				for n := int64(0); n < longest && rnd.IntN(4) > 0; {
					n = min(n+1+rnd.Int64N(longest/2), longest)
					before := a.held
					if !b.take(&a, n, nil) || a.held != n {
						t.Errorf("asked for %d, holds %d", n, a.held)
						return
					}
					now := out.Add(n - before)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
				}
				out.Add(-a.held)
				b.put(&a)
			}
		})
	}
	wg.Wait()
	if most.Load() > limit+longest {
		t.Errorf("%d bytes were out at once", most.Load())
	}
	if b.outstanding(limit) != 0 || b.overdrawn != nil || len(b.started)+len(b.fresh) != 0 {
		t.Errorf("left over: %+v", &b)
	}
}

// TestBudgetOrder looks at who waits for whom, and at who stops waiting.
func TestBudgetOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget{free: 100}
		var first, second, third, small allowance
		if !b.take(&first, 60, nil) || !b.take(&second, 40, nil) {
			t.Fatal("no room in an empty budget")
		}
		var got []string
		var mu sync.Mutex
		take := func(name string, a *allowance, n int64, stop chan struct{}) {
			go func() {
				ok := b.take(a, n, stop)
				mu.Lock()
				defer mu.Unlock()
				if !ok {
					name += " left"
				}
				got = append(got, name)
			}()
			synctest.Wait()
		}
		stop := make(chan struct{})
		take("small", &small, 1, stop)        // waits: nothing is free
		take("first", &first, 100, nil)       // overdraws
		take("third", &third, 10, nil)        // waits behind small
		take("second", &second, 50, nil)      // waits: one may overdraw
		take("first again", &first, 110, nil) // goes on overdrawing
		close(stop)
		synctest.Wait()
		b.put(&first) // second holds something and comes before third
		synctest.Wait()
		b.put(&second)
		b.put(&third)
		b.put(&small)
		want := []string{"first", "first again", "small left", "second", "third"}
		if len(got) != len(want) {
			t.Fatalf("order %q", got)
		}
		for i := range want {
			if got[i] != want[i] && i != 3 && i != 4 { // these two are served together
				t.Errorf("order %q, want %q", got, want)
			}
		}
		if b.outstanding(100) != 0 {
			t.Errorf("%d bytes lost", b.outstanding(100))
		}
	})
}
