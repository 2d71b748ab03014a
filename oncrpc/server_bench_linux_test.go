package oncrpc

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"
)

// BenchmarkServer is the server under a client that only writes calls and reads replies, a
// number of them in flight. CPU is the whole process's.
func BenchmarkServer(b *testing.B) {
	var xid uint32 // never the same again
	once := ServerOptions{Replies: NewTestCache()}
	sampled := ServerOptions{Slow: time.Hour, Observe: func(Served) {}, Sample: func() bool { return rand.Uint64() < 1<<57 }}
	for _, k := range []struct {
		name string
		o    ServerOptions
		proc uint32
		args []byte
	}{
		{"null", ServerOptions{}, procNull, nil},
		{"null-sampled", sampled, procNull, nil},
		{"echo", ServerOptions{}, procEcho, str("sixteen bytes or so, and then some more")},
		{"write4k", ServerOptions{}, procWrite, append(words(0, 4096), make([]byte, 4100)...)},
		{"write4k-once", once, procWrite, append(words(0, 4096), make([]byte, 4100)...)},
		{"write1m-once", once, procWrite, append(words(0, 1<<20-256), make([]byte, 1<<20-252)...)},
	} {
		for _, depth := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/depth=%d", k.name, depth), func(b *testing.B) {
				_, addr := startServer(b, newService(), k.o)
				nc, err := net.Dial("tcp", addr)
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = nc.Close() }() // nothing hangs on it
				b.ReportAllocs()
				before := cpu(b)
				flood(b, nc, record(message(1, k.proc, k.args)), depth, xid)
				xid += uint32(b.N)
				b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// flood makes b.N calls, depth of them in flight, in one write for each read.
func flood(b *testing.B, nc net.Conn, call []byte, depth int, xid uint32) {
	out, in := make([]byte, 0, depth*len(call)), make([]byte, 1<<16)
	sent, got, have := 0, 0, 0
	reads := 0
	for got < b.N {
		out = out[:0]
		for ; sent < b.N && sent-got < depth; sent++ {
			at := len(out)
			out = append(out, call...)
			binary.BigEndian.PutUint32(out[at+markBytes:], xid+uint32(sent))
		}
		if _, err := nc.Write(out); err != nil {
			b.Fatal(err)
		}
		n, err := nc.Read(in[have:])
		if err != nil {
			b.Fatal(err)
		}
		reads++
		have += n
		at := 0
		for have-at >= markBytes {
			size := markBytes + int(binary.BigEndian.Uint32(in[at:])&^lastFragment)
			if have-at < size {
				break
			}
			at += size
			got++
		}
		have = copy(in, in[at:have])
	}
	b.ReportMetric(float64(b.N)/float64(reads), "replies/read")
}

// cpu is what the process has used, in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
