package view

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/testkit/leak"
)

// TestMain looks for goroutines of ours when all tests have cleaned up.
func TestMain(m *testing.M) { leak.Main(m) }

// fake is a server whose counters the test moves.
type fake struct {
	s       Snapshot
	now     time.Time
	latency [3]*metric.Histogram
}

var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// newFake is a server that has been up for an hour.
func newFake() *fake {
	f := &fake{now: epoch.Add(time.Hour), latency: [3]*metric.Histogram{{}, {}, {}}}
	f.s = Snapshot{
		URL: "nfs://192.0.2.1/data", Version: "1.2.3", Started: epoch,
		Procs: []Proc{
			{Name: "READ", Program: "NFS", Version: 3}, {Name: "WRITE", Program: "NFS", Version: 3},
			{Name: "MNT", Program: "MOUNT", Version: 3},
		},
		Process: Process{Threads: 12, CPU: time.Minute, Memory: 64 << 20},
		Conns:   Conns{Open: 7, Clients: 5, Accepted: 100, Evicted: 2, Refused: 3},
		Gate: Gate{Kind: "auto", Reason: "c is not possible: built without cgo and the tag nfsbox_cthreads", Bound: 32, Inside: 4, Waiting: 1, Memory: 1000, Lanes: []Lane{
			{Export: "/data", Name: "read", Inside: 4, Waiting: 1, Entered: 10, Waits: 5, Waited: time.Second},
			{Export: "/data", Name: "write"}, // never used
		}},
		Limits: []Limit{
			{Name: "connections", Used: 7, Max: 4096}, {Name: "request memory", Bytes: true, Used: 96 << 20, Max: 128 << 20},
			{Name: "calls under way", Used: 3},
		},
		LocalIO: &LocalIO{Sessions: 2, Files: 9, Opened: 50, Refused: 1, Revoked: 4},
		Caches:  []Cache{{Name: "open files", Used: 30, Max: 4096, Hits: 10, Misses: 10}},
		Clients: []Client{
			{Name: "192.0.2.7", Conns: 2, InFlight: 3}, {Name: "1000@127.0.0.1", User: "1000", Conns: 1},
			{Name: "2001:db8:12:3456:789a:bcde:f012:3456", Conns: 4, InFlight: 1},
		},
		Jobs: []Job{{Name: "nightly", State: "running", Items: 10, Total: 40, Bytes: 1 << 30, Failed: 1}},
	}
	return f
}

func (f *fake) source() Snapshot {
	s := f.s
	s.Procs = append([]Proc(nil), s.Procs...)
	for i := range s.Procs {
		s.Procs[i].Latency = f.latency[i].Snapshot()
	}
	if s.LocalIO != nil {
		l := *s.LocalIO
		s.LocalIO = &l
	}
	s.Gate.Lanes = append([]Lane(nil), s.Gate.Lanes...)
	s.Caches = append([]Cache(nil), s.Caches...)
	s.Clients = append([]Client(nil), s.Clients...)
	return s
}

// call makes calls of a procedure.
func (f *fake) call(proc, n int, took time.Duration) {
	p := &f.s.Procs[proc]
	p.Calls += uint64(n)
	p.BytesIn += uint64(n) * 100
	p.BytesOut += uint64(n) * 1000
	for range n {
		f.latency[proc].Duration(took)
	}
}

// work is what the server does in two seconds.
func (f *fake) work() {
	f.now = f.now.Add(2 * time.Second)
	f.call(0, 198, time.Millisecond)
	f.call(0, 2, 50*time.Millisecond)
	f.call(1, 20, 4*time.Millisecond)
	f.s.Procs[1].Errors += 2
	f.s.Process.CPU += 3 * time.Second
	f.s.Conns.Accepted += 4
	f.s.Gate.Memory += 300
	f.s.Gate.Lanes[0].Entered += 40
	f.s.Gate.Lanes[0].Waits += 10
	f.s.Gate.Lanes[0].Waited += 20 * time.Millisecond
	if f.s.LocalIO != nil {
		f.s.LocalIO.Opened += 6
	}
	for i := range min(len(f.s.Clients), 3) {
		c := &f.s.Clients[i]
		c.Calls += 40 >> i
		c.BytesIn += 4000 << (3 * i)
		c.BytesOut += 80_000 >> i
	}
	f.s.Caches[0].Hits += 90
	f.s.Caches[0].Misses += 10
}

func (f *fake) options() Options {
	return Options{Source: f.source, Now: func() time.Time { return f.now }}
}

// slow are two calls that took long.
func (f *fake) slow(v *View) {
	v.Slow(SlowCall{At: f.now, Proc: "READ", Client: "192.0.2.7:999", XID: 0xabc, Took: 50 * time.Millisecond, Waited: time.Millisecond})
	v.Slow(SlowCall{At: f.now, Proc: "WRITE", Client: "192.0.2.8:999", XID: 1, Took: 2 * time.Second, Path: "/data/file"})
}

// count is what a sample of calls says of two seconds.
func (f *fake) count(v *View) {
	for i := range 10 {
		v.Count(Call{Client: "192.0.2.7", User: "0", File: "/data/home/alice/projects/simulation/run-0042/results.h5", Took: time.Millisecond, BytesOut: 8000})
		v.Count(Call{Client: "2001:db8:12:3456:789a:bcde:f012:3456", User: "1001", File: "/data/var/mail/bob", Took: time.Duration(i) * 5 * time.Millisecond, BytesIn: 5000})
	}
	v.Count(Call{Client: "192.0.2.9", User: "backup", File: "/data/backup/2026-03-04.tar", Took: 90 * time.Millisecond, BytesIn: 40_000})
}

// get asks a handler.
func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	return w
}
