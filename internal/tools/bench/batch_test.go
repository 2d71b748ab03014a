package bench_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestBatch counts each call of a batch as an operation, and whole batches.
func TestBatch(t *testing.T) {
	s := serve(t, memfs.Options{})
	s.put("file", 10)
	for verb, proc := range map[string]string{"null": "NULL", "getattr": "GETATTR"} {
		o := s.options(verb, "file")
		o.Batch, o.Count, o.Concurrency, o.WarmUp = 64, 1000, 3, 0
		before := s.calls(proc)
		res := run(t, o)
		overhead := s.calls(proc) - before - res.Ops - res.WarmUpOps
		if res.Ops != 1024 || res.RPCs != 1024 || res.WarmUpOps != 128 || overhead > 8 || res.ClientCalls[proc] != 1024 {
			t.Errorf("%s: %+v; %d calls more", verb, res, overhead)
		}
		checkLatency(t, res)
	}
}

// checkLatency looks at a batch's times: each call's is that of all.
func checkLatency(t *testing.T, r *bench.Result) {
	t.Helper()
	if l := r.Latency; l.P50 <= 0 || l.Mean > l.Max || l.Mean*float64(r.Ops)/1e6/64 > r.Seconds*float64(r.Concurrency) {
		t.Errorf("%+v in %v s", l, r.Seconds)
	}
}

// TestBatchFails counts the calls of a batch that fail, and those that do not.
func TestBatchFails(t *testing.T) {
	var n atomic.Uint64
	s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op != "getattr" {
			return nil
		}
		if i := n.Add(1); i > 40 && i%4 == 0 { // not in the preparations
			return vfs.ErrIO
		}
		return nil
	}})
	s.put("file", 10)
	o := s.options("getattr", "file")
	o.Batch, o.Count = 10, 400
	res, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Ops+res.Errors != 400 || res.Errors < 90 || res.Errors > 110 || len(res.Faults) != 1 || res.Faults[0].Kind != "IO" {
		t.Errorf("%d operations, %d errors, %+v", res.Ops, res.Errors, res.Faults)
	}
}
