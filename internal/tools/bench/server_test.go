package bench_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
)

// metrics serves what s and api count, as a server of ours does, and extra calls of
// GETATTR that nobody has made.
func (s *server) metrics(api *fileapi.Server, extra *atomic.Uint64) string {
	scrapes := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		scrapes++
		for _, p := range s.srv.Stats().Procs {
			n := p.Calls
			if p.Proc.Name == "NFSPROC3_GETATTR" {
				n += extra.Load()
			}
			_, _ = fmt.Fprintf(w, "nfsbox_rpc_calls_total{procedure=%q,version=\"3\"} %d\n", p.Proc.Name, n)
		}
		for name, c := range api.Snapshot().Calls {
			_, _ = fmt.Fprintf(w, "nfsbox_api_calls_total{procedure=%q} %d\n", name, c.Time.Count)
		}
		_, _ = fmt.Fprintf(w, "nfsbox_process_threads %d\nprocess_cpu_seconds_total %d\n", 20+scrapes%3, scrapes)
	}))
	s.t.Cleanup(h.Close)
	return h.URL + "/metrics"
}

// TestCountsMatch holds every verb's counts against the server's.
func TestCountsMatch(t *testing.T) {
	need.Time(t, "the counts of every verb of bench, beside the server's")
	s := serve(t, memfs.Options{})
	s.put("file", fileSize)
	url, api := s.api()
	var extra atomic.Uint64
	metrics := s.metrics(api, &extra)
	perform := func(verb, at string) *bench.Result {
		t.Helper()
		o := s.options(verb, at)
		if at == "api" {
			o.URL = url
		}
		o.ServerMetrics, o.Concurrency = metrics, 3
		if verb != "clean" {
			o.Count, o.WarmUp = 40, 0
		}
		if verb == "read" || verb == "write" {
			o.Size = 1000
		}
		res := run(t, o)
		if res.ServerOps == nil || res.ServerThreads == nil || res.CPU.Server == nil || res.CountsMatch == nil {
			t.Fatalf("%s: %+v", verb, res)
		}
		if *res.ServerThreads < 20 || *res.ServerThreads > 22 || *res.CPU.Server < 1 || *res.ServerOps < 40 {
			t.Errorf("%s: %d threads, %v s, %d calls", verb, *res.ServerThreads, *res.CPU.Server, *res.ServerOps)
		}
		return res
	}
	for _, at := range []string{"", "api"} {
		for _, verb := range bench.Verbs() {
			if at == "api" && slices.Index(bench.Verbs(), verb) < slices.Index(bench.Verbs(), "upload") {
				continue // a verb of NFS
			}
			if verb == "clean" {
				perform("upload", at)
			}
			if res := perform(verb, at); !*res.CountsMatch {
				t.Errorf("%s %s: %d operations, calls %v, and the server has counted %v", verb, at, res.Ops, res.ClientCalls, res.ServerCalls)
			}
		}
	}
	// Somebody else's calls show.
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				extra.Add(1)
				runtime.Gosched()
			}
		}
	}()
	if res := perform("getattr", "file"); *res.CountsMatch {
		t.Errorf("calls %v, and the server has counted %v", res.ClientCalls, res.ServerCalls)
	}
	close(stop)
	<-done
}

// TestCountsLate has a server count its last call a while after it has answered.
func TestCountsLate(t *testing.T) {
	const count, late = 40, 4
	s := serve(t, memfs.Options{})
	looks := 0
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := s.calls("NULL")
		if n >= count {
			if looks++; looks <= late {
				n--
			}
		}
		_, _ = fmt.Fprintf(w, "nfsbox_rpc_calls_total{procedure=\"NFSPROC3_NULL\",version=\"3\"} %d\n", n)
	}))
	t.Cleanup(h.Close)
	o := s.options("null", "")
	o.Count, o.ServerMetrics = count, h.URL
	if res := run(t, o); res.CountsMatch == nil || !*res.CountsMatch {
		t.Errorf("calls %v, and the server has counted %v", res.ClientCalls, res.ServerCalls)
	}
}

// TestMetricsElsewhere refuses metrics that are not a server's, or not there.
func TestMetricsElsewhere(t *testing.T) {
	s := serve(t, memfs.Options{})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			_, _ = fmt.Fprintln(w, "go_goroutines 7")
			return
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	for _, path := range []string{"/", "/other", ":x"} {
		o := s.options("null", "")
		o.ServerMetrics = h.URL + path
		if res, err := bench.Run(t.Context(), o); err == nil || res != nil {
			t.Errorf("%s: %+v", path, res)
		}
	}
	h.Close()
	o := s.options("null", "")
	o.ServerMetrics = h.URL
	if res, err := bench.Run(t.Context(), o); !errors.Is(err, bench.ErrUnreachable) || res != nil {
		t.Errorf("nobody there: %v", err)
	}
}

// TestThreads sees the threads of a process: this one.
func TestThreads(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: no /proc")
	}
	o := serve(t, memfs.Options{}).options("null", "")
	o.Count, o.ServerPID = 100, os.Getpid()
	if res := run(t, o); res.ServerThreads == nil || *res.ServerThreads < 2 || *res.ServerThreads > 10_000 {
		t.Errorf("%v", res.ServerThreads)
	}
}
