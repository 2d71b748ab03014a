package main

import (
	"context"
	"encoding/binary"
	"net"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// TestTrickle has 2,000 connections send a WRITE of a megabyte each, the first
// part at once and then a few bytes at a time, while another client works. The
// server's memory stays in its bounds, and the other client is served.
func TestTrickle(t *testing.T) {
	need.Time(t, "2,000 slow connections at once")
	t.Parallel()
	const (
		maxRSS = 512 << 20
		rounds = 40
	)
	connections, length := int64(2000), time.Second
	if need.Race {
		connections = 400 // which then load the machine as much
	}
	if os.Getenv("NFSBOX_SOAK") != "" {
		length = time.Minute
	}
	s := serveProcess(t, nil, t.TempDir(), "--listen", "127.0.0.1:0", "--state-dir", t.TempDir())
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	record := writeRecord(t, u.Host)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var sent, open atomic.Int64
	for range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				trickle(ctx, u.Host, record, &sent, &open)
			}
		})
	}
	eventually(t, "connections", func() bool { return open.Load() >= connections*95/100 })
	// From another address: one client's greed costs others nothing.
	l, start := startLoad(t, s.url, 1, 2, nfsbox.WithDialer(dialFrom("127.0.0.2"))), time.Now()
	l.await(t, rounds)
	took := time.Since(start)
	eventually(t, "end", func() bool { return time.Since(start) > length })
	l.finish(t)
	// Those that the server has cut off come back.
	most := int64(0)
	eventually(t, "connections at the end", func() bool { most = open.Load(); return most >= connections*9/10 })
	stop()
	all.Wait()
	peak := s.status(t, "VmHWM") << 10
	t.Logf("%d connections, %d MiB sent, %d rounds of another client in %v, peak of the server's memory %d MiB",
		most, sent.Load()>>20, rounds, took, peak>>20)
	// The race detector remembers what was last done to each word, in memory of its own.
	if peak > maxRSS && !need.Race {
		t.Errorf("the server took %d MiB", peak>>20)
	}
	s.stop(t)
}

// dialFrom dials from another address of this host.
func dialFrom(ip string) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	return d.DialContext
}

// eventually waits for what is polled.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(2 * patience); !is(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("no %s within %v", what, 2*patience)
		}
	}
}

// trickle sends a record on a connection of its own, until the server has had
// enough of it or ctx ends.
func trickle(ctx context.Context, address string, record []byte, sent, open *atomic.Int64) {
	const first, more, pause = 900 << 10, 256, 100 * time.Millisecond
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	open.Add(1)
	defer func() {
		open.Add(-1)
		_ = c.Close() // the server may have closed it
	}()
	// What the server does not read shall not pile up here.
	if err := c.(*net.TCPConn).SetWriteBuffer(64 << 10); err != nil {
		return
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for at, n := 0, first; at < len(record); n = more {
		if err := c.SetWriteDeadline(time.Now().Add(pause)); err != nil {
			return
		}
		n, err := c.Write(record[at:min(at+n, len(record))])
		sent.Add(int64(n))
		if at += n; err != nil && !os.IsTimeout(err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// writeRecord is a WRITE of a megabyte to a file at the server, as it goes over
// the wire.
func writeRecord(t *testing.T, address string) []byte {
	t.Helper()
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", address)
	}})
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	auth, err := (&oncrpc.AuthSys{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}).Auth()
	if err != nil {
		t.Fatal(err)
	}
	var mounted mount3.Mountres3
	reply, err := c.Call(t.Context(), mount3.MOUNTPROC3_MNT, auth, &mount3.Mountargs{Path: []byte("/")}, &mounted)
	if err != nil || mounted.FhsStatus != mount3.MNT3_OK {
		t.Fatal(mounted.FhsStatus, err)
	}
	defer reply.Release()
	var made nfs3.CREATE3res
	args := nfs3.CREATE3args{Where: nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: mounted.Mountinfo.Fhandle}, Name: []byte("trickled")}}
	reply, err = c.Call(t.Context(), nfs3.NFSPROC3_CREATE, auth, &args, &made)
	if err != nil || made.Status != nfs3.NFS3_OK || !made.Resok.Obj.HandleFollows {
		t.Fatal(made.Status, err)
	}
	defer reply.Release()
	const size = 1 << 20
	b := make([]byte, 4) // the record's mark
	for _, v := range []uint32{0x77777777, 0, 2, 100003, 3, 7, 0, 0, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	h := made.Resok.Obj.Handle.Data
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(h))), h...)
	b = append(b, make([]byte, -len(h)&3)...)
	for _, v := range []uint32{0, 0, size, 0, size} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = append(b, make([]byte, size)...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4)|1<<31)
	return b
}
