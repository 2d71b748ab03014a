package nfsclient_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/metric"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient"
	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// storage is what a server's disks are like: so many calls are served at once,
// and the others queue.
type storage struct {
	slots chan struct{}
	spent func(n uint64) time.Duration // of the n-th call
}

// disks makes a storage of slots that take d each.
func disks(slots int, d time.Duration) *storage {
	return &storage{make(chan struct{}, slots), func(uint64) time.Duration { return d }}
}

// bimodal makes a storage whose calls take one of two times, as of a cache and
// the disk behind it, at random.
func bimodal(slots int, hit, miss time.Duration) *storage {
	return &storage{make(chan struct{}, slots), func(n uint64) time.Duration {
		if bits.OnesCount64(n*0x9e3779b97f4a7c15)%2 == 0 {
			return hit
		}
		return miss
	}}
}

// filer is a server whose GETATTR waits for its storage.
type filer struct {
	storage atomic.Pointer[storage] // nil: memory alone
	calls   atomic.Uint64
	took    metric.Histogram // from a call's arrival at the storage to its end
	host    string
	port    uint16
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
}

func (f *filer) serve(ctx context.Context, op string, _ vfs.Handle) error {
	if op != "getattr" {
		return nil
	}
	n := f.calls.Add(1)
	s := f.storage.Load()
	if s == nil {
		return nil
	}
	began := time.Now()
	s.slots <- struct{}{}
	time.Sleep(s.spent(n))
	<-s.slots
	f.took.Since(began, time.Now())
	return nil
}

// newFiler serves at a port of this host until the test ends.
func newFiler(t *testing.T, s *storage) *filer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveFiler(t, s, l, nil)
}

// newFarFiler serves over a network of 100 us whose time a bubble makes: what else
// the machine does cannot be taken for the server's slowness.
func newFarFiler(t *testing.T, s *storage) *filer {
	t.Helper()
	n := sim.NewNetwork(1)
	way := sim.Faults{Latency: 100 * time.Microsecond}
	n.SetFaults(way, way)
	l, err := n.Listen("10.0.0.1:2049")
	if err != nil {
		t.Fatal(err)
	}
	return serveFiler(t, s, l, n.DialContext)
}

func serveFiler(t *testing.T, s *storage, l net.Listener, dial func(context.Context, string, string) (net.Conn, error)) *filer {
	t.Helper()
	f := &filer{dial: dial}
	f.storage.Store(s)
	table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: memfs.New(memfs.Options{Fault: f.serve})})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table, MaxCallsPerConn: 2 * pace.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, nfsserver.ErrClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f.host, f.port = at.Addr().String(), at.Port()
	return f
}

// load is callers that each make a call as soon as the last has returned.
type load struct {
	pace *pace.Limiter
	done atomic.Uint64
	stop context.CancelFunc
	wait sync.WaitGroup
}

// newLoad mounts the filer and begins. limit 0 is adaptive.
func newLoad(t *testing.T, f *filer, limit, callers int) *load {
	t.Helper()
	l := &load{pace: pace.New(pace.Options{Max: [pace.Classes]int{limit, limit, limit}})}
	c, err := nfsclient.Mount(t.Context(), nfsclient.Options{
		Host: f.host, Path: "/", Port: f.port, SourcePort: nfsclient.PortAny, Dial: f.dial,
		FS: v3.Options{Pace: l.pace},
	})
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := c.FS().Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	l.stop = func() {
		stop()
		l.wait.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for range callers {
		l.wait.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.FS().GetAttr(ctx, root, vfs.MaskV3); err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				l.done.Add(1)
			}
		})
	}
	return l
}

// limit is how many calls may be under way now.
func (l *load) limit() int { return l.pace.Snapshot()[pace.Metadata].Limit }

// figures are what a load got: calls a second, and how long they were at the
// storage.
type figures struct {
	rate      float64
	mean, p99 time.Duration
	limit     int // in the end
}

func (f figures) String() string {
	return fmt.Sprintf("%7.0f/s, mean %v, p99 %v, limit %d", f.rate, f.mean.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond), f.limit)
}

// medians takes the median of each figure.
func medians(all []figures) figures {
	middle := func(of func(figures) float64) float64 {
		v := make([]float64, len(all))
		for i, f := range all {
			v[i] = of(f)
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	return figures{
		rate:  middle(func(f figures) float64 { return f.rate }),
		mean:  time.Duration(middle(func(f figures) float64 { return float64(f.mean) })),
		p99:   time.Duration(middle(func(f figures) float64 { return float64(f.p99) })),
		limit: int(middle(func(f figures) float64 { return float64(f.limit) })),
	}
}

// begun is where counting began.
type begun struct {
	at   time.Time
	done uint64
	took *metric.Snapshot
}

func (f *filer) begin(l *load) begun { return begun{time.Now(), l.done.Load(), f.took.Snapshot()} }

// end is what l got since.
func (f *filer) end(l *load, b begun) figures {
	took := f.took.Snapshot()
	took.Sub(b.took)
	return figures{
		rate:  float64(l.done.Load()-b.done) / time.Since(b.at).Seconds(),
		mean:  time.Duration(took.Mean()),
		p99:   took.Duration(0.99),
		limit: l.limit(),
	}
}

// run is one load, counted for so long after warming up; limit 0 is adaptive.
func (f *filer) run(t *testing.T, limit int, warm, long time.Duration) figures {
	t.Helper()
	l := newLoad(t, f, limit, offered)
	defer l.stop()
	time.Sleep(warm)
	b := f.begin(l)
	time.Sleep(long)
	return f.end(l, b)
}
