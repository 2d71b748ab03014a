//go:build linux

package outsider

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	farSize  = 400_000_000
	farTrip  = 100 * time.Millisecond // there and back
	farPiece = 1 << 20
	farAhead = 32 // pieces in flight
)

// TestFarFile measures one large file over a long way against what the same way lets
// through with 32 MiB in flight, in turn, five times each. It is for a machine that does
// nothing else; TMPDIR may be in memory, so that no disk takes part.
func TestFarFile(t *testing.T) {
	if os.Getenv("NFSBOX_SOAK") == "" {
		t.Skip("NFSBOX_SOAK is not set")
	}
	b := newBox(t)
	b.write(b.path("srv", "f"), string(pattern(farSize, 1)))
	p := b.proxy(b.serve(b.path("srv")), func(p *proxy) { p.delay = farTrip / 2 })
	took := make(map[string][]time.Duration)
	for range 5 {
		for what, run := range map[string]func() time.Duration{
			"read":    func() time.Duration { return p.readFar(b, "f") },
			"cp from": func() time.Duration { return b.must(0, "cp", p.url()+"f", b.path("copy")).took },
			"cat":     func() time.Duration { return b.toNull("cat", p.url()+"f") },
			"write":   func() time.Duration { return p.writeFar(b, "raw") },
			"cp to":   func() time.Duration { return b.must(0, "cp", b.path("srv", "f"), p.url()+"there").took },
		} {
			took[what] = append(took[what], run())
		}
		b.no(os.Remove(b.path("copy")))
		b.no(os.Remove(b.path("srv", "raw")))
		b.no(os.Remove(b.path("srv", "there")))
	}
	median := func(what string) time.Duration {
		slices.Sort(took[what])
		return took[what][len(took[what])/2]
	}
	for what, than := range map[string]string{"cp from": "read", "cat": "read", "cp to": "write"} {
		ours, raw := median(what), median(than)
		t.Logf("%-7s %.2fs, raw %s %.2fs: %.2f of it (%v, %v)", what, ours.Seconds(), than, raw.Seconds(),
			ours.Seconds()/raw.Seconds(), took[what], took[than])
	}
}

// toNull is what a run takes whose output nobody keeps.
func (b *box) toNull(args ...string) time.Duration {
	b.Helper()
	cmd := b.command(args...)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	b.no(err)
	defer func() { _ = null.Close() }()
	cmd.Stdout = null
	start := time.Now()
	b.no(cmd.Run())
	return time.Since(start)
}

// far connects to the server by the proxy.
func (p *proxy) far() (*peer, error) {
	c, err := net.Dial("tcp", p.listener.Addr().String())
	return &peer{conn: c, machine: "outsider"}, err
}

// readFar reads a file, with farAhead READs in flight.
func (p *proxy) readFar(b *box, name string) time.Duration {
	b.Helper()
	start := time.Now()
	peer, err := p.far()
	b.no(err)
	defer func() { _ = peer.conn.Close() }()
	file, status, err := peer.lookup(peer.root(b), name)
	b.no(err)
	if status != statusOK {
		b.Fatalf("LOOKUP: status %d", status)
	}
	b.no(peer.stream(nfsREAD, func(off uint64, n int) []byte { return readArgs(file, off, uint32(n)) }))
	return time.Since(start)
}

// writeFar writes a file, with farAhead WRITEs in flight, and makes it stable.
func (p *proxy) writeFar(b *box, name string) time.Duration {
	b.Helper()
	data := pattern(farPiece, 2)
	start := time.Now()
	peer, err := p.far()
	b.no(err)
	defer func() { _ = peer.conn.Close() }()
	file, status, err := peer.create(peer.root(b), name, 0o644)
	b.no(err)
	if status != statusOK {
		b.Fatalf("CREATE: status %d", status)
	}
	b.no(peer.stream(nfsWRITE, func(off uint64, n int) []byte { return writeArgs(file, off, unstable, data[:n]) }))
	status, _, err = peer.nfs(nfsCOMMIT, u32(u64(opaque(nil, file), 0), 0))
	if err != nil || status != statusOK {
		b.Fatalf("COMMIT: status %d, %v", status, err)
	}
	return time.Since(start)
}

// stream makes the calls for a file of farSize, as many at once as farAhead says.
func (p *peer) stream(proc uint32, args func(off uint64, n int) []byte) error {
	room := make(chan struct{}, farAhead)
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		for off := uint64(0); off < farSize; off += farPiece {
			room <- struct{}{}
			if err := p.send(progNFS, 3, proc, args(off, int(min(farPiece, farSize-off)))); err != nil {
				failed <- err
				return
			}
		}
	}()
	for off := 0; off < farSize; off += farPiece {
		r, err := p.receive()
		if err != nil {
			return err
		}
		if status := r.u32(); status != statusOK {
			return fmt.Errorf("status %d", status)
		}
		<-room
	}
	return <-failed
}

// TestAskedOnce: a command that works on one file asks the server for the name once, and
// for its attributes, or those of the directory that receives it, before and after the
// copy alone.
func TestAskedOnce(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), string(pattern(64<<10, 1)))
	var mu sync.Mutex
	var asked map[uint32]int
	p := b.proxy(b.serve(b.path("srv")), func(p *proxy) {
		p.towards = func() change {
			var pending []byte
			return func(data []byte) []byte {
				mu.Lock()
				defer mu.Unlock()
				pending = countCalls(append(pending, data...), asked)
				return data
			}
		}
	})
	for _, tc := range []struct {
		args              []string
		lookups, getattrs int
	}{
		{[]string{"cat", p.url() + "f"}, 1, 0},
		{[]string{"stat", p.url() + "f"}, 1, 0},
		{[]string{"cp", p.url() + "f", b.path("copy")}, 1, 2},
		{[]string{"cp", b.path("srv", "f"), p.url() + "there"}, 1, 0},
		{[]string{"cp", b.path("srv", "f"), p.url() + "there"}, 1, 0}, // which replaces it
		{[]string{"cp", b.path("srv", "f"), p.url()}, 1, 2},
	} {
		mu.Lock()
		asked = make(map[uint32]int)
		mu.Unlock()
		b.must(0, tc.args...)
		mu.Lock()
		if n, m := asked[nfsLOOKUP], asked[nfsGETATTR]; n > tc.lookups || m > tc.getattrs {
			t.Errorf("%s: %d LOOKUPs and %d GETATTRs, want %d and %d", tc.args[0], n, m, tc.lookups, tc.getattrs)
		}
		mu.Unlock()
	}
}

// countCalls counts the procedures of NFS that are called in p, by their numbers, and
// returns what is left of a call that has not come whole.
func countCalls(p []byte, asked map[uint32]int) []byte {
	for len(p) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(p)&(1<<31-1))
		if len(p) < n {
			break
		}
		call := reader(p[4:n])
		if _, kind, _ := call.u32(), call.u32(), call.u32(); kind == 0 {
			if program, _ := call.u32(), call.u32(); program == progNFS {
				asked[call.u32()]++
			}
		}
		p = p[n:]
	}
	return p
}
