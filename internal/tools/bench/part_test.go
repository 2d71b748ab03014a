package bench

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// idle is a caller whose operations cost nothing.
type idle struct {
	plain
	n int
}

func (c *idle) op(context.Context) (moved, error) {
	c.n++
	return moved{bytes: 1}, nil
}

func idlers(n int) []caller {
	all := make([]caller, n)
	for i := range all {
		all[i] = new(idle)
	}
	return all
}

// BenchmarkHarness is what the harness itself costs an operation, histogram,
// clock and division of the work included.
func BenchmarkHarness(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			start := time.Now()
			p := newPart(&Options{Clock: func() time.Duration { return time.Since(start) }}, idlers(n))
			p.limit(uint64(b.N), 1)
			b.ReportAllocs()
			b.ResetTimer()
			p.run(b.Context(), nil)
		})
	}
}

// TestShares divides operations among callers so that none is lost or made
// twice, whatever their numbers.
func TestShares(t *testing.T) {
	clock := func() time.Duration { return 0 }
	for _, callers := range []int{1, 2, 7, 64, 100} {
		for _, n := range []uint64{1, 2, 63, 64, 65, 4095, 100_000} {
			all := idlers(callers)
			p := newPart(&Options{Clock: clock}, all)
			p.limit(n, 1)
			p.run(t.Context(), nil)
			sum := uint64(0)
			for _, c := range all {
				sum += uint64(c.(*idle).n)
			}
			if latency, m := p.counted(); sum != n || latency.Count != n || m.bytes != n {
				t.Errorf("%d callers, %d operations: %d made, %d and %d bytes counted", callers, n, sum, latency.Count, m.bytes)
			}
		}
	}
}

// TestNoAllocation allows the harness none for an operation.
func TestNoAllocation(t *testing.T) {
	p := newPart(&Options{Clock: func() time.Duration { return 0 }}, idlers(1))
	n := testing.AllocsPerRun(10, func() {
		p.limit(10_000, 1)
		p.loop(t.Context(), p.callers[0], &p.shards[0])
	})
	if n != 0 {
		t.Errorf("%v allocations for 10,000 operations", n)
	}
}
