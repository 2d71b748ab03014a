package bench_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
)

// pages serves metrics page by page: the n-th answer is page(n), from 0.
func pages(t *testing.T, page func(n int) string) string {
	t.Helper()
	n := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, page(n))
		n++
	}))
	t.Cleanup(h.Close)
	return h.URL
}

// TestServerTimeExact reports the time of the measured part: neither what was spent before nor
// what the looking itself costs the server, behind the end, is in it.
func TestServerTimeExact(t *testing.T) {
	s := serve(t, memfs.Options{})
	o := s.options("null", "")
	o.Count = 100
	// One page to see whether it is there; two that are alike; then, behind the
	// end, more than two, the first of which says what the run has cost.
	o.ServerMetrics = pages(t, func(n int) string {
		return fmt.Sprintf("nfsbox_process_threads 9\nprocess_cpu_seconds_total %d\nnfsbox_rpc_calls_total{procedure=\"NFSPROC3_NULL\"} %d\n",
			n, map[bool]int{true: s0, false: s0 + 100}[n < 3])
	})
	if res := run(t, o); res.CPU.Server == nil || *res.CPU.Server != 1 || res.CountsMatch == nil || !*res.CountsMatch {
		t.Errorf("%+v, %v", res.CPU, res.ServerCalls)
	}
}

const s0 = 1000 // calls before the run

// TestServerUnknown leaves out what metrics do not say.
func TestServerUnknown(t *testing.T) {
	s := serve(t, memfs.Options{})
	for name, tc := range map[string]struct {
		page    func(n int) string
		time    bool // of the processor is known
		counted bool
	}{
		"no processor time": {page: func(n int) string {
			return fmt.Sprintf("nfsbox_rpc_calls_total{procedure=\"NFSPROC3_NULL\"} %d\n", s0+n/3*100)
		}, counted: true},
		"a server that was started anew": {page: func(n int) string {
			if n < 3 {
				return "process_cpu_seconds_total 5\nnfsbox_rpc_calls_total{procedure=\"NFSPROC3_GETATTR\"} 7\nnfsbox_rpc_calls_total{procedure=\"NFSPROC3_NULL\"} 0\n"
			}
			return "process_cpu_seconds_total 6\nnfsbox_rpc_calls_total{procedure=\"NFSPROC3_NULL\"} 100\n"
		}},
	} {
		o := s.options("null", "")
		o.Count = 100
		o.ServerMetrics = pages(t, tc.page)
		res := run(t, o)
		if (res.CPU.Server != nil) != tc.time || (res.CPU.ServerPerOp != nil) != tc.time {
			t.Errorf("%s: %v seconds", name, *res.CPU.Server)
		}
		if (res.CountsMatch != nil) != tc.counted || (res.ServerCalls != nil) != tc.counted || (res.ServerOps != nil) != tc.counted {
			t.Errorf("%s: %v, %v", name, res.CountsMatch, res.ServerCalls)
		}
	}
}

// TestNothingToMatch says nothing where there was no call that both could count.
func TestNothingToMatch(t *testing.T) {
	s := serve(t, memfs.Options{})
	o := s.options("clean", "")
	o.ServerMetrics = pages(t, func(int) string { return "nfsbox_process_threads 9\n" })
	if res := run(t, o); res.CountsMatch != nil {
		t.Errorf("of no operations: %t", *res.CountsMatch)
	}
	if bench.Matches("read", &bench.Result{Ops: 5}) != nil {
		t.Error("of reads without a call")
	}
	some := map[string]uint64{"READ": 5}
	if m := bench.Matches("read", &bench.Result{Ops: 5, ClientCalls: some, ServerCalls: some}); m == nil || !*m {
		t.Error("of reads that were counted")
	}
}
