package throttle

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// move has workers move pieces of n bytes for d, and returns how many bytes passed.
func move(t *testing.T, limit *Throttle, workers, n int, d time.Duration) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var moved atomic.Uint64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				for left := n; left > 0; {
					part := limit.Part(left)
					if limit.Take(ctx, part) != nil {
						return
					}
					moved.Add(uint64(part))
					left -= part
				}
			}
		})
	}
	all.Wait()
	return moved.Load()
}

// TestRate: the bytes of ten seconds are those of the rate, within a twentieth, in pieces of any size
// and however many move them.
func TestRate(t *testing.T) {
	for _, rate := range []uint64{64 << 10, 1_000_000, 100 << 20, 5 << 30} {
		for _, workers := range []int{1, 64} {
			for _, n := range []int{5000, 1 << 20} {
				synctest.Test(t, func(t *testing.T) {
					if rate/uint64(n) > 100_000 {
						return // no less than this, and long
					}
					got := move(t, New(rate), workers, n, 10*time.Second)
					if off := float64(got)/float64(10*rate) - 1; math.Abs(off) > 0.05 {
						t.Errorf("%d bytes a second, %d workers, pieces of %d: %d bytes, %+.1f %%", rate, workers, n, got, 100*off)
					}
				})
			}
		}
	}
}

// TestSet: a changed rate holds at once, also for what waits already.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := New(Least)
		var all sync.WaitGroup
		var early uint64
		all.Go(func() { early = move(t, limit, 8, 1<<20, 20*time.Second) })
		time.Sleep(10 * time.Second)
		limit.Set(10 << 20)
		all.Wait()
		if want := 10 * 10 << 20; math.Abs(float64(early)/float64(want)-1) > 0.05 {
			t.Errorf("faster: %d bytes, want %d", early, want)
		}
		limit.Set(1 << 20)
		if got := move(t, limit, 8, 1<<20, 10*time.Second); math.Abs(float64(got)/float64(10<<20)-1) > 0.05 {
			t.Errorf("slower: %d bytes", got)
		}
		all.Go(func() { time.Sleep(time.Second); limit.Set(0) })
		start := time.Now()
		if err := limit.Take(t.Context(), 1<<30); err != nil {
			t.Error(err)
		}
		if err := limit.Take(t.Context(), 1<<30); err != nil || time.Since(start) > time.Second {
			t.Errorf("without a bound: %v, after %v", err, time.Since(start))
		}
		all.Wait()
	})
}

// TestNone: nil, and a rate of 0, bound nothing; a wait ends with its context.
func TestNone(t *testing.T) {
	var none *Throttle
	if err := none.Take(t.Context(), 1<<40); err != nil || none.Part(7) != 7 || none.Rate() != 0 {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		limit := New(1)
		if limit.Rate() != Least {
			t.Error(limit.Rate())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				err := limit.Take(ctx, 1<<20)
				if err = errors.Join(err, limit.Take(ctx, 1<<20)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}
