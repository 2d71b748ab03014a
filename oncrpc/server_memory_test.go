package oncrpc

import (
	"errors"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc/internal/budget"
)

// resident is the memory that the process has from the system now.
func resident() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}

// trickle begins a WRITE of 1 MiB, and sends a byte now and then until stop is closed.
func trickle(nc net.Conn, begun []byte, stop <-chan struct{}) {
	_, err := nc.Write(begun) // blocks while the server does not read
	for tick := time.NewTicker(100 * time.Millisecond); err == nil; {
		select {
		case <-stop:
			tick.Stop()
			return
		case <-tick.C:
			_, err = nc.Write([]byte{0})
		}
	}
}

// TestServerTrickle has 1,000 connections send 1 MiB each, as slowly as they can. Another
// client is served in time, and memory stays within its bound, however many clients the
// slow connections belong to.
func TestServerTrickle(t *testing.T) {
	const limit = 512 << 20
	conns := 1000
	if need.Race {
		conns = 400 // the detector takes its own time and memory
	}
	for _, k := range []struct {
		name    string
		clients int
		room    int64
	}{
		{"one client", 1, DefaultMaxRequestBytes / 2},
		{"eight clients", 8, DefaultMaxRequestBytes/9*8 - 8*budget.Room(1<<20)},
	} {
		t.Run(k.name, func(t *testing.T) {
			runtime.GC() // what pools keep outlives one collection
			debug.FreeOSMemory()
			before := resident()
			_, srv, c := pair(t, ServerOptions{HeadTimeout: time.Minute}, ClientOptions{})
			defer trickles(t, c.addr(t), conns, k.clients)()
			waitFor(t, "the requests", func() bool { return srv.Stats().RequestBytes > k.room-budget.Room(1<<20) })
			var most, slowest = int64(0), time.Duration(0)
			for range 20 {
				start := time.Now()
				if err := errors.Join(callEcho(t.Context(), c, procEcho, "prompt"), writeBulk(t, c, 1<<20-100)); err != nil {
					t.Fatal(err)
				}
				slowest = max(slowest, time.Since(start))
				most = max(most, resident()-before)
				if n := srv.Stats().RequestBytes; n > DefaultMaxRequestBytes {
					t.Fatalf("%d bytes of requests", n)
				}
			}
			t.Logf("%d MiB at most, %v a call", most>>20, slowest)
			if most > limit && !need.Race {
				t.Errorf("%d MiB in use", most>>20)
			}
			if slowest > patience/4 {
				t.Errorf("another client waited %v", slowest)
			}
		})
	}
}

// trickles starts trickle on conns connections of some clients. It returns what ends them.
func trickles(t *testing.T, to string, conns, clients int) func() {
	begun := append(words(lastFragment|1<<20), message(1, procWrite, words(0, 1<<20-60))...)
	begun = append(begun, make([]byte, 100<<10)...)
	stop := make(chan struct{})
	var all []net.Conn
	var wg sync.WaitGroup
	end := func() {
		close(stop)
		for _, nc := range all {
			_ = nc.Close() // nothing hangs on it
		}
		wg.Wait()
	}
	for i := range conns {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%clients))}}
		nc, err := d.DialContext(t.Context(), "tcp", to)
		if err != nil {
			end()
			t.Skipf("no %d connections of %d clients on this system: %v", conns, clients, err)
		}
		all = append(all, nc)
		wg.Go(func() { trickle(nc, begun, stop) })
	}
	return end
}

// addr is where c's server is.
func (c *Client) addr(t *testing.T) string {
	nc, err := c.o.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }() // nothing hangs on it
	return nc.RemoteAddr().String()
}
