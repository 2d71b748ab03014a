package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestCounts holds what each verb says against what the server has counted.
func TestCounts(t *testing.T) {
	for _, tc := range []struct {
		name     string
		set      func(o *bench.Options)
		verb, at string
		proc     string
		perOp    uint64 // calls of proc
		bytes    uint64 // of an operation
	}{
		{"null", nil, "null", "", "NULL", 1, 0},
		{"getattr of a file", nil, "getattr", "file", "GETATTR", 1, 0},
		{"getattr of the root", nil, "getattr", "", "GETATTR", 1, 0},
		{"read a file", func(o *bench.Options) { o.Size = 4096 }, "read", "file", "READ", 1, 4096},
		{"read at random", func(o *bench.Options) { o.Size, o.Random = 1000, true }, "read", "file", "READ", 1, 1000},
		{"read more than there is", func(o *bench.Options) { o.Size = 1 << 20 }, "read", "file", "READ", 1, fileSize},
		{"read more than the server gives", func(o *bench.Options) { o.Size = 3 << 20 }, "read", "large", "READ", 3, 3 << 20},
		{"read what it makes", func(o *bench.Options) { o.Size, o.FileSize = 4096, 100_000 }, "read", "", "READ", 1, 4096},
		{"write", func(o *bench.Options) { o.Size = 4096 }, "write", "", "WRITE", 1, 4096},
		{"write stably", func(o *bench.Options) { o.Size, o.Stable = 4096, true }, "write", "", "WRITE", 1, 4096},
		{"write more than the server takes", func(o *bench.Options) { o.Size, o.FileSize = 2<<20, 4<<20 }, "write", "", "WRITE", 2, 2 << 20},
	} {
		for _, callers := range []int{1, 5} {
			t.Run(tc.name, func(t *testing.T) {
				s := serve(t, memfs.Options{})
				s.put("file", fileSize)
				s.put("large", 3<<20)
				o := s.options(tc.verb, tc.at)
				o.Concurrency, o.Count = callers, 50
				if tc.set != nil {
					tc.set(&o)
				}
				before := s.calls(tc.proc)
				res := run(t, o)
				calls := s.calls(tc.proc) - before
				overhead := calls - tc.perOp*res.Ops // of connecting and resolving
				if tc.verb == "read" || tc.verb == "write" {
					if overhead != 0 {
						t.Errorf("%d calls of %s for %d operations", calls, tc.proc, res.Ops)
					}
				} else if overhead > 8 {
					t.Errorf("%d calls of %s for %d operations", calls, tc.proc, res.Ops)
				}
				if !res.Complete || res.Ops != 50 || res.Bytes != 50*tc.bytes || res.WarmUpOps != 0 {
					t.Errorf("%d operations, %d bytes, warm-up %d", res.Ops, res.Bytes, res.WarmUpOps)
				}
				if want := tc.perOp*res.Ops + res.Commits; res.RPCs != want {
					t.Errorf("%d RPCs, want %d", res.RPCs, want)
				}
				if res.Commits != s.calls("COMMIT")-commitsOfFill(tc.name) {
					t.Errorf("%d commits, and the server has counted %d", res.Commits, s.calls("COMMIT"))
				}
				if names := s.names(); !slices.Equal(names, []string{"file", "large"}) {
					t.Errorf("left behind: %q", names)
				}
				if s.srv.Stats().Errors != 0 {
					t.Errorf("the server has answered %d errors", s.srv.Stats().Errors)
				}
				checkFigures(t, res)
			})
		}
	}
}

const fileSize = 50_000

// commitsOfFill is how often a file that is made to be read is committed.
func commitsOfFill(name string) uint64 {
	if strings.Contains(name, "what it makes") {
		return 1
	}
	return 0
}

// checkFigures looks for figures that contradict each other.
func checkFigures(t *testing.T, r *bench.Result) {
	t.Helper()
	near := func(what string, got, want float64) {
		if math.IsNaN(got) || math.Abs(got-want) > 1e-6*math.Abs(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("ops_per_second", r.OpsPerSecond, float64(r.Ops)/r.Seconds)
	near("bytes_per_second", r.BytesPerSecond, float64(r.Bytes)/r.Seconds)
	near("entries_per_second", r.EntriesPerSecond, float64(r.Entries)/r.Seconds)
	l := r.Latency
	if !slices.IsSorted([]float64{0, l.P50, l.P90, l.P99, l.P999, l.Max}) || l.P50 <= 0 || l.Mean <= 0 || l.Mean > l.Max {
		t.Errorf("latency %+v", l)
	}
	// Callers do nothing but operations, so that their time adds up. What is
	// missing is the start of the goroutines.
	busy := l.Mean / 1e6 * float64(r.Ops) / float64(r.Concurrency)
	if busy > r.Seconds*1.0001 {
		t.Errorf("callers were busy for %v s of %v s", busy, r.Seconds)
	}
	if runtime.GOOS != "windows" && r.CPU.ClientUser+r.CPU.ClientSystem < 0 {
		t.Errorf("processor time %+v", r.CPU)
	}
}

// TestWarmUp makes operations that do not count, and says how many.
func TestWarmUp(t *testing.T) {
	s := serve(t, memfs.Options{})
	s.put("file", fileSize)
	o := s.options("read", "file")
	o.Size, o.Concurrency, o.Count, o.WarmUp = 512, 4, 1000, time.Hour
	res := run(t, o)
	if res.Ops != 1000 || res.WarmUpOps != 100 || s.calls("READ") != 1100 || res.RPCs != 1000 || res.Latency.Unit != "us" {
		t.Errorf("%d operations, warm-up %d, %d RPCs; the server has counted %d", res.Ops, res.WarmUpOps, res.RPCs, s.calls("READ"))
	}
}

// TestDuration ends by time.
func TestDuration(t *testing.T) {
	s := serve(t, memfs.Options{})
	o := s.options("null", "")
	o.Concurrency, o.Duration = 8, 300*time.Millisecond
	res := run(t, o)
	if res.Seconds < 0.3 || !res.Complete {
		t.Errorf("it took %v s: %+v", res.Seconds, res)
	}
	if res.Ops == 0 || s.calls("NULL") < res.Ops {
		t.Errorf("%d operations, and the server has counted %d", res.Ops, s.calls("NULL"))
	}
}

// TestSamples says on its way how it goes.
func TestSamples(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := serve(t, memfs.Options{}).options("null", "")
	o.Concurrency, o.Count = 8, 1<<40
	var samples []bench.Sample
	o.Each = func(s bench.Sample) {
		samples = append(samples, s)
		cancel()
	}
	res, err := bench.Run(ctx, o)
	if !errors.Is(err, context.Canceled) || res == nil {
		t.Fatal(res, err)
	}
	if len(samples) == 0 || samples[0].Ops == 0 || samples[0].Ops > res.Ops || samples[0].OpsPerSecond <= 0 || samples[0].Latency.P50 <= 0 {
		t.Errorf("samples: %+v", samples)
	}
}

// TestSameSeed reads the same places with the same seed, and others with
// another, or in another caller.
func TestSameSeed(t *testing.T) {
	first := bench.Places(1, 0, 64, 256)
	if again := bench.Places(1, 0, 64, 256); again != first {
		t.Errorf("%s, and then %s", first, again)
	}
	if bench.Places(2, 0, 64, 256) == first || bench.Places(1, 1, 64, 256) == first {
		t.Error("another seed, or caller, has the same places")
	}
}

// TestFailures counts what fails by its kind, and goes on.
func TestFailures(t *testing.T) {
	var n atomic.Uint64
	s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op != "read" {
			return nil
		}
		switch n.Add(1) % 10 {
		case 1:
			return vfs.ErrIO
		case 2, 3:
			return vfs.ErrAccess
		}
		return nil
	}})
	s.put("file", fileSize)
	o := s.options("read", "file")
	o.Concurrency, o.Count, o.Size = 4, 100, 1000
	res, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Ops != 70 || res.Errors != 30 || res.Bytes != 70*1000 || s.calls("READ") != 100 || s.srv.Stats().Errors != 30 {
		t.Errorf("%d operations, %d errors, %d bytes", res.Ops, res.Errors, res.Bytes)
	}
	if len(res.Faults) != 2 || res.Faults[0].Kind != vfs.ErrAccess.Name() || res.Faults[0].Count != 20 ||
		res.Faults[1].Kind != vfs.ErrIO.Name() || res.Faults[1].Count != 10 || res.Faults[1].Example == "" {
		t.Errorf("%+v", res.Faults)
	}
}

// TestGivesUp ends a run of which nothing succeeds any more.
func TestGivesUp(t *testing.T) {
	s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "write" {
			return vfs.ErrNoSpace
		}
		return nil
	}})
	o := s.options("write", "")
	o.Concurrency, o.Count = 3, 1<<40
	res, err := bench.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "in a row") {
		t.Errorf("%v", err)
	}
	if res == nil || res.Ops != 0 || res.Errors < 48 || res.Errors > 51 {
		t.Errorf("%+v", res)
	}
	if names := s.names(); len(names) != 0 {
		t.Errorf("left behind: %q", names)
	}
	// Given up in the warm-up, there is no result, and so the error says it all.
	o.WarmUp = time.Hour
	res, err = bench.Run(t.Context(), o)
	if res != nil || err == nil || !strings.Contains(err.Error(), "warm-up") || !strings.Contains(err.Error(), vfs.ErrNoSpace.Name()) {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestKinds tells what a server has answered from what it has not.
func TestKinds(t *testing.T) {
	for want, err := range map[string]error{
		"timeout":             fmt.Errorf("%w: %w", syscall.EIO, os.ErrDeadlineExceeded), // of a soft client
		"connection":          fmt.Errorf("%w: %w", syscall.EIO, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
		vfs.ErrNoSpace.Name(): fmt.Errorf("WRITE: %w", vfs.ErrNoSpace),
		vfs.ErrIO.Name():      vfs.ErrIO,
		"unknown outcome":     vfs.ErrUnknownOutcome,
		"other":               errors.New("other"),
	} {
		if got := bench.KindOf(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

// TestRestart notices that a server has forgotten what was written.
func TestRestart(t *testing.T) {
	var writes atomic.Uint64
	var s *server
	s = serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "write" && writes.Add(1) == 5 {
			s.fs.Restart()
		}
		return nil
	}})
	o := s.options("write", "")
	o.Count, o.Size, o.FileSize = 10, 1000, 10_000
	res, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Errors != 1 || len(res.Faults) != 1 || !strings.Contains(res.Faults[0].Kind, "verifier") || res.Commits != 1 {
		t.Errorf("%+v", res)
	}
}

// TestCancelled leaves nothing behind, and tells what was counted.
func TestCancelled(t *testing.T) {
	for _, verb := range []string{"read", "write"} {
		t.Run(verb, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var calls atomic.Uint64
			s := serve(t, memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
				if op == verb && calls.Add(1) == 100 {
					cancel()
				}
				return nil
			}})
			s.put("mine", 10)
			o := s.options(verb, "")
			o.Concurrency, o.Count, o.Size, o.FileSize = 4, 1<<40, 4096, 1<<16
			res, err := bench.Run(ctx, o)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if res == nil || res.Complete || res.Ops == 0 || res.Ops > calls.Load() || res.Errors != 0 {
				t.Errorf("%+v", res)
			}
			if names := s.names(); !slices.Equal(names, []string{"mine"}) {
				t.Errorf("left behind: %q", names)
			}
		})
	}
}

// TestCancelledEarly is cut off in every call of the preparations.
func TestCancelledEarly(t *testing.T) {
	for _, verb := range []string{"read", "write"} {
		for at := range uint64(24) {
			ctx, cancel := context.WithCancel(t.Context())
			var calls atomic.Uint64
			s := serve(t, memfs.Options{Fault: func(context.Context, string, vfs.Handle) error {
				if calls.Add(1) == at {
					cancel()
				}
				return nil
			}})
			o := s.options(verb, "")
			o.Concurrency, o.Count, o.FileSize = 4, 8, 4<<20
			_, err := bench.Run(ctx, o)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s, cut off at call %d: %v", verb, at, err)
			}
			if names := s.names(); len(names) != 0 {
				t.Errorf("%s, cut off at call %d: left behind: %q", verb, at, names)
			}
			cancel()
		}
	}
}

// TestForeign leaves a file alone that has taken the name of one of ours.
func TestForeign(t *testing.T) {
	var s *server
	var once atomic.Bool
	s = serve(t, memfs.Options{Fault: func(ctx context.Context, op string, _ vfs.Handle) error {
		if op != "write" || !once.CompareAndSwap(false, true) {
			return nil
		}
		root, _, err := s.fs.Root(ctx)
		if err != nil {
			return err
		}
		name := s.names()[0]
		if _, err := s.fs.Remove(ctx, root, name, false); err != nil {
			return err
		}
		_, _, _, err = s.fs.Create(ctx, root, name, &vfs.CreateHow{Type: vfs.TypeReg})
		return err
	}})
	o := s.options("write", "")
	o.Count, o.Size = 4, 1000
	_, err := bench.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("%v", err)
	}
	if names := s.names(); len(names) != 1 || !strings.HasPrefix(names[0], bench.Prefix) {
		t.Errorf("%q", names)
	}
}

// TestRefused says what makes no sense before anything is sent.
func TestRefused(t *testing.T) {
	s := serve(t, memfs.Options{})
	s.put("empty", 0)
	s.put("file", 10)
	for name, set := range map[string]func(o *bench.Options){
		"verb":        func(o *bench.Options) { o.Verb = "nosuch" },
		"URL":         func(o *bench.Options) { o.URL = "http://x/" },
		"no URL":      func(o *bench.Options) { o.URL = "" },
		"callers":     func(o *bench.Options) { o.Concurrency = -1 },
		"crowd":       func(o *bench.Options) { o.Concurrency = bench.MaxConcurrency + 1 },
		"count":       func(o *bench.Options) { o.Count = math.MaxUint64 },
		"duration":    func(o *bench.Options) { o.Duration = -1 },
		"eternity":    func(o *bench.Options) { o.Duration = bench.MaxDuration + 1 },
		"warm-up":     func(o *bench.Options) { o.WarmUp = bench.MaxDuration + 1 },
		"size":        func(o *bench.Options) { o.Size = -1 },
		"large":       func(o *bench.Options) { o.Size = bench.MaxSize + 1 },
		"memory":      func(o *bench.Options) { o.Size, o.Concurrency = bench.MaxSize, 1000 },
		"batch":       func(o *bench.Options) { o.Batch = bench.MaxBatch + 1 },
		"batches":     func(o *bench.Options) { o.Batch, o.Concurrency = bench.MaxBatch, bench.MaxConcurrency },
		"files":       func(o *bench.Options) { o.FileSize = -1 },
		"small files": func(o *bench.Options) { o.Size, o.FileSize = 1000, 999 },
		"pid":         func(o *bench.Options) { o.ServerPID = -1 },
		"no process":  func(o *bench.Options) { o.ServerPID = math.MaxInt32 },
		"empty":       func(o *bench.Options) { o.Verb, o.URL = "read", s.url("empty") },
		"into a file": func(o *bench.Options) { o.Verb, o.URL = "write", s.url("file") },
	} {
		o := s.options("null", "")
		set(&o)
		if res, err := bench.Run(t.Context(), o); !errors.Is(err, bench.ErrUsage) || res != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.calls("WRITE") + s.calls("CREATE"); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// TestUnreachable tells a server that is not there from other failures.
func TestUnreachable(t *testing.T) {
	s := serve(t, memfs.Options{})
	gone := s.options("null", "")
	if err := s.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := bench.Run(t.Context(), gone); !errors.Is(err, bench.ErrUnreachable) {
		t.Errorf("no server: %v", err)
	}
	if _, err := bench.Run(t.Context(), serve(t, memfs.Options{}).options("read", "missing")); !errors.Is(err, bench.ErrUnreachable) {
		t.Errorf("no file: %v", err)
	}
}

// TestServerTime reads the processor time of a process: this one.
func TestServerTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: no /proc")
	}
	s := serve(t, memfs.Options{})
	o := s.options("null", "")
	o.Count, o.Concurrency, o.ServerPID = 20_000, 8, os.Getpid()
	res := run(t, o)
	if res.CPU.Server == nil || res.CPU.ServerPerOp == nil {
		t.Fatal("no time")
	}
	// Both are of the same process, to a tick of either reading.
	if own := res.CPU.ClientUser + res.CPU.ClientSystem; math.Abs(own-*res.CPU.Server) > 0.05+0.2*own {
		t.Errorf("%v s, and by getrusage %v s", *res.CPU.Server, own)
	}
}
