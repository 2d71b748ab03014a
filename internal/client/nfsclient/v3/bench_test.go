package v3_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// canned is a client of a server that has one answer for each procedure and
// allocates nothing to give it: what is allocated is the client's. There is one
// for FSINFO.
func canned(tb testing.TB, proc *xdr.Proc, res xdr.Appender) *v3.FS {
	tb.Helper()
	replies := make(map[uint32][]byte)
	fsinfo := &nfs3.FSINFO3res{Resok: nfs3.FSINFO3resok{Rtmax: 1 << 20, Wtmax: 1 << 20}}
	for p, res := range map[*xdr.Proc]xdr.Appender{nfs3.NFSPROC3_FSINFO: fsinfo, proc: res} {
		// Record mark, xid, REPLY, MSG_ACCEPTED, AUTH_NONE of no bytes, SUCCESS.
		reply, err := res.AppendXDR(make([]byte, 28))
		if err != nil {
			tb.Fatal(err)
		}
		binary.BigEndian.PutUint32(reply, 1<<31|uint32(len(reply)-4))
		reply[11] = 1
		replies[p.Number] = reply
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = answer(c, replies) // it ends when the client leaves
		_ = c.Close()
	}()
	rpc := oncrpc.NewClient(oncrpc.ClientOptions{Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}})
	tb.Cleanup(func() {
		if err := rpc.Close(); err != nil {
			tb.Error(err)
		}
		_ = l.Close() // for an Accept that still waits
		<-done
	})
	fs, err := v3.New(rpc, handle(tb, "root"), v3.Options{Pace: pace.New(pace.Options{})})
	if err != nil {
		tb.Fatal(err)
	}
	return fs
}

// answer answers calls by their procedure.
func answer(c net.Conn, replies map[uint32][]byte) error {
	call := make([]byte, 2<<20)
	for {
		if _, err := io.ReadFull(c, call[:4]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(call) &^ (1 << 31)
		if _, err := io.ReadFull(c, call[:n]); err != nil {
			return err
		}
		reply := replies[binary.BigEndian.Uint32(call[20:])]
		copy(reply[4:8], call)
		if _, err := c.Write(reply); err != nil {
			return err
		}
	}
}

// cases are the frequent calls, each with the bytes that it moves: with a context
// that can be cancelled, a limiter and counters, as programs make them.
func cases(tb testing.TB) map[string]func() error {
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	h, data := handle(tb, "file"), make([]byte, bulk)
	read := &nfs3.READ3res{Resok: nfs3.READ3resok{Count: bulk, Data: make([]byte, bulk)}}
	written := &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: bulk, Committed: nfs3.FILE_SYNC}}
	found := &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte("found")}}}
	open := func(fs *v3.FS) vfs.File {
		f, _, err := fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
		if err != nil {
			tb.Fatal(err)
		}
		return f
	}
	getattr, lookup := canned(tb, nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3res{}), canned(tb, nfs3.NFSPROC3_LOOKUP, found)
	reader, writer := open(canned(tb, nfs3.NFSPROC3_READ, read)), open(canned(tb, nfs3.NFSPROC3_WRITE, written))
	var w vfs.Written
	return map[string]func() error{
		"getattr": func() error { _, err := getattr.GetAttr(ctx, h, vfs.MaskV3); return err },
		"lookup":  func() error { _, _, _, err := lookup.Lookup(ctx, h, "a-name-of-some-length"); return err },
		"read":    func() error { _, _, err := reader.ReadAt(ctx, data, 0, nil); return err },
		"write":   func() error { _, err := writer.WriteAt(ctx, data, 0, vfs.Unstable, &w); return err },
	}
}

// bulk is what the READs and WRITEs move.
const bulk = 64 << 10

// TestLean holds the frequent calls to not allocating.
func TestLean(t *testing.T) {
	for name, op := range cases(t) {
		allocs := testing.AllocsPerRun(500, func() {
			if err := op(); err != nil {
				t.Fatal(err)
			}
		})
		if allocs >= 1 && !need.Race {
			t.Errorf("%s: %.1f allocations, want none", name, allocs)
		}
	}
}

func BenchmarkCalls(b *testing.B) {
	for name, op := range cases(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			if name == "read" || name == "write" {
				b.SetBytes(bulk)
			}
			for b.Loop() {
				if err := op(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
