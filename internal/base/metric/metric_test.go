package metric

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestBuckets: every value is in the bucket whose bounds hold it.
func TestBuckets(t *testing.T) {
	var next uint64
	for i := range Buckets {
		low, width := bounds(i)
		if low != next {
			t.Fatalf("bucket %d begins at %d, and the one below ended at %d", i, low, next)
		}
		if bucket(low) != i || bucket(low+width-1) != i {
			t.Fatalf("bucket %d holds %d to %d, which land in %d and %d", i, low, low+width-1, bucket(low), bucket(low+width-1))
		}
		if low >= subs && width*subs > low {
			t.Fatalf("bucket %d is %d wide at %d", i, width, low)
		}
		next = low + width
	}
	if bucket(math.MaxUint64) != Buckets-1 {
		t.Errorf("the largest value is in bucket %d", bucket(math.MaxUint64))
	}
}

// TestQuantiles compares with the sorted values.
func TestQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	values := make([]uint64, 10_000)
	var sum uint64
	for i := range values {
		values[i] = uint64(math.Exp(rnd.Float64() * 25))
		sum += values[i]
		h.Record(values[i])
	}
	slices.Sort(values)
	s := h.Snapshot()
	if s.Count != uint64(len(values)) || s.Sum != sum || s.Max != values[len(values)-1] {
		t.Errorf("count %d, sum %d, max %d", s.Count, s.Sum, s.Max)
	}
	for _, q := range []float64{-1, 0, 0.01, 0.5, 0.9, 0.99, 0.999, 1, 2} {
		rank := min(max(int(math.Ceil(q*float64(len(values)))), 1), len(values))
		want := values[rank-1]
		got := s.Quantile(q)
		if diff := math.Abs(float64(got) - float64(want)); diff > float64(want)/subs {
			t.Errorf("quantile %v: %d, and it is %d", q, got, want)
		}
	}
	if mean := float64(sum) / float64(len(values)); math.Abs(s.Mean()-mean) > 1e-6*mean {
		t.Errorf("mean %v, and it is %v", s.Mean(), mean)
	}
}

// TestEmpty: nothing counted is no reason to divide.
func TestEmpty(t *testing.T) {
	var h Histogram
	for _, s := range []*Snapshot{nil, {}, h.Snapshot()} {
		if s.Quantile(0.5) != 0 || s.Mean() != 0 || s.Duration(1) != 0 {
			t.Errorf("%+v is not empty", s)
		}
		for range s.All() {
			t.Error("a bucket of nothing")
		}
	}
}

// TestAddSub: what two histograms counted is what one would have, and what came
// in between is the difference.
func TestAddSub(t *testing.T) {
	var a, b, both Histogram
	for i := range uint64(500) {
		a.Record(i)
		b.Record(i * i)
		both.Record(i)
		both.Record(i * i)
	}
	sum := a.Snapshot()
	sum.Add(b.Snapshot())
	sum.Add(nil)
	if *sum != *both.Snapshot() {
		t.Error("the sum differs from counting together")
	}
	before := both.Snapshot()
	both.Duration(-time.Second)
	both.Since(time.Unix(0, 0), time.Unix(1, 0))
	after := both.Snapshot()
	after.Sub(before)
	after.Sub(nil)
	var got []uint64
	for upper, n := range after.All() {
		got = append(got, upper, n)
	}
	if after.Count != 2 || after.Sum != 1e9 || len(got) != 4 || got[0] != 1 || got[1] != 1 || got[2] <= 1e9 || got[3] != 1 {
		t.Errorf("in between: %d values, sum %d, buckets %v", after.Count, after.Sum, got)
	}
}

// TestConcurrent: nothing that is recorded is lost, and recording is free.
func TestConcurrent(t *testing.T) {
	var h Histogram
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range uint64(10_000) {
				h.Record(i)
			}
		})
	}
	for range 100 {
		if s := h.Snapshot(); s.Count > 80_000 {
			t.Errorf("%d values counted", s.Count)
		}
	}
	wg.Wait()
	if s := h.Snapshot(); s.Count != 80_000 || s.Max != 9999 {
		t.Errorf("%d values, max %d", s.Count, s.Max)
	}
	if n := testing.AllocsPerRun(100, func() { h.Duration(time.Second) }); n != 0 {
		t.Errorf("recording allocates %v times", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	for i := uint64(0); b.Loop(); i += 977 {
		h.Record(i)
	}
}
