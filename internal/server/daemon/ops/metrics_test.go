package ops

import (
	"reflect"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
)

// TestAddDirectory leaves no count out.
func TestAddDirectory(t *testing.T) {
	var s localfs.Snapshot
	for _, v := range reflect.ValueOf(&s).Elem().Fields() {
		if v.CanInt() {
			v.SetInt(21)
		} else {
			v.SetUint(21)
		}
	}
	sum := s
	addDirectory(&sum, &s)
	for field, v := range reflect.ValueOf(sum).Fields() {
		if v.CanInt() && v.Int() != 42 || v.CanUint() && v.Uint() != 42 {
			t.Errorf("%s of two directories with 21 each: %v", field.Name, v)
		}
	}
}

// TestSecondsOf puts values into Prometheus' buckets exactly.
func TestSecondsOf(t *testing.T) {
	var h metric.Histogram
	for _, d := range []time.Duration{0, 1<<13 - 1, 1 << 13, 1<<14 - 1, 1 << 14, time.Hour} {
		h.Duration(d)
	}
	got := secondsOf(h.Snapshot())
	for bound, want := range map[int]uint64{13: 2, 14: 4, 15: 5, 34: 5} {
		if n := got.buckets[float64(uint64(1)<<bound)/1e9]; n != want {
			t.Errorf("up to 2^%d: %d, want %d", bound, n, want)
		}
	}
	if got.n != 6 || len(got.buckets) != lastBound-firstBound+1 || got.sum < 3600 {
		t.Errorf("%+v", got)
	}
}
