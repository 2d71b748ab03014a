package ops

import (
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
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

// TestAddUpstream leaves no count out.
func TestAddUpstream(t *testing.T) {
	var s Upstream
	for _, v := range reflect.ValueOf(&s).Elem().Fields() {
		v.SetUint(21)
	}
	sum := s
	addUpstream(&sum, &s)
	for field, v := range reflect.ValueOf(sum).Fields() {
		if v.Uint() != 42 {
			t.Errorf("%s of two servers with 21 each: %v", field.Name, v)
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

// TestUploadsInProgress counts files on their way in, by whatever way.
func TestUploadsInProgress(t *testing.T) {
	calls := make(map[string]fileapi.Call)
	for name, n := range map[string]int64{"Upload": 1, "Put": 10, "HTTP PUT": 100, "HTTP GET": 1000} {
		calls[name] = fileapi.Call{InProgress: n, Time: new(metric.Histogram).Snapshot()}
	}
	r := prometheus.NewRegistry()
	if err := r.Register(apiAlone{&fileapi.Snapshot{Calls: calls}}); err != nil {
		t.Fatal(err)
	}
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == "nfsbox_api_uploads_in_progress" {
			if n := f.GetMetric()[0].GetGauge().GetValue(); n != 111 {
				t.Errorf("%v uploads, want 111", n)
			}
			return
		}
	}
	t.Error("there is no such metric")
}

// apiAlone collects what there is of a file API.
type apiAlone struct{ s *fileapi.Snapshot }

func (apiAlone) Describe(chan<- *prometheus.Desc) {}

func (a apiAlone) Collect(out chan<- prometheus.Metric) { writer{out: out}.api(a.s) }
