package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// A greedy client speaks for itself: it sends what no honest one would.

// rawCall is a call as a record.
func rawCall(t testing.TB, xid uint32, p *xdr.Proc, cred oncrpc.Auth, args xdr.Appender) []byte {
	t.Helper()
	b := make([]byte, 4)
	for _, w := range []uint32{xid, 0, 2, p.Program, p.Version, p.Number, uint32(cred.Flavor)} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	b = xdr.AppendOpaque(b, cred.Body)
	b = append(b, make([]byte, 8)...) // no verifier
	b, err := args.AppendXDR(b)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(b, 1<<31|uint32(len(b)-4))
	return b
}

// dialFrom connects from an address of this host.
func dialFrom(t testing.TB, local, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	c, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Skipf("this host has no address %s to call from: %v", local, err)
	}
	t.Cleanup(func() { _ = c.Close() }) // there is nothing left that it could lose
	return c
}

// until waits for something that another goroutine brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it never came to pass that %s", what)
}

// TestUnreadReplies has a client ask for all the memory of replies and take none of
// it. Others read and list all the same, also on another connection of the same
// address, and the server does not fill its memory for it.
func TestUnreadReplies(t *testing.T) {
	const size, reads, memory = 1 << 20, 128, 32 << 20
	fs := memfs.New(memfs.Options{Mode: 0o777, ReadMax: size})
	r := serve(t, fs, nfsserver.Options{MaxReplyBytes: memory})
	r.fs = fs
	r.put("/large", noise(size))
	small := r.file(r.root, "small", 0o644, "hello")
	deaf := dialFrom(t, "127.0.0.1", r.addr)
	large := r.find(r.root, "large")
	before := r.srv.Stats().Calls["READ"]
	for i := range uint32(reads) {
		if _, err := deaf.Write(rawCall(t, i, nfs3.NFSPROC3_READ, r.auth, &nfs3.READ3args{File: fh(large), Count: size})); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all of the READs have begun", func() bool { return r.srv.Stats().Calls["READ"] == before+reads })
	if res := r.read(small, 0, 5); res.Status != nfs3.NFS3_OK || string(res.Resok.Data) != "hello" {
		t.Errorf("another's READ: %v", res.Status)
	}
	if p := r.readdir(r.root, 0, [8]byte{}, 4096); p.status != nfs3.NFS3_OK {
		t.Errorf("another's READDIR: %v", p.status)
	}
	if n := r.srv.Stats().ReplyBytes; n > memory/4 {
		t.Errorf("%d bytes wait for a client that takes none", n)
	}
}

// admitting is a table that exports fs as "/" to these clients.
func admitting(t testing.TB, fs vfs.FS, rules ...string) *export.Table {
	t.Helper()
	e := export.Export{Path: "/", FS: fs}
	for _, m := range rules {
		e.Clients = append(e.Clients, export.Rule{Match: m})
	}
	table, err := export.NewTable(export.Key{1, 2, 3}, e)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// answered reads a reply and drops it.
func answered(t testing.TB, c net.Conn) {
	t.Helper()
	var mark [4]byte
	if _, err := io.ReadFull(c, mark[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(mark[:])&^(1<<31))); err != nil {
		t.Fatal(err)
	}
}

// TestStrangersLocks asks for locks by messages from addresses that no rule admits. Their
// answers would be calls of the server's: it keeps and sends nothing, and a client that is
// admitted gets its lock.
func TestStrangersLocks(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777})
	r := serve(t, fs, nfsserver.Options{Exports: admitting(t, fs, "127.0.0.1"), Locks: true})
	h := r.file(r.root, "f", 0o666, "")
	alock := func(name string) nlm4.Nlm4Lock {
		return nlm4.Nlm4Lock{CallerName: []byte(name), Fh: h, Oh: []byte(name), LLen: 1}
	}
	for n := range 5 {
		c := dialFrom(t, fmt.Sprint("127.0.0.", 2+n), r.addr)
		for i := range uint32(200) {
			args := &nlm4.Nlm4Testargs{Alock: alock(fmt.Sprint("stranger", i))}
			if _, err := c.Write(rawCall(t, i, nlm4.NLMPROC4_TEST_MSG, r.auth, args)); err != nil {
				t.Fatal(err)
			}
			answered(t, c)
		}
	}
	if st := r.srv.Stats().Locks; st.Clients != 0 {
		t.Errorf("%d clients that no rule admits are known", st.Clients)
	}
	var res nlm4.Nlm4Res
	r.call(nlm4.NLMPROC4_LOCK, &nlm4.Nlm4Lockargs{Exclusive: true, Alock: alock("honest")}, &res)
	if res.Stat.Stat != nlm4.NLM4_GRANTED {
		t.Errorf("an honest lock: %v", res.Stat.Stat)
	}
}

// TestStrangersReplies sends calls to be executed once from thousands of addresses that no
// rule admits, and from one that is admitted, with made-up handles. What is remembered of
// another client stays.
func TestStrangersReplies(t *testing.T) {
	fs := memfs.New(memfs.Options{Mode: 0o777})
	r := serve(t, fs, nfsserver.Options{Exports: admitting(t, fs, "127.0.0.0/24")})
	mkdir := func(xid uint32, dir []byte) []byte {
		return rawCall(t, xid, nfs3.NFSPROC3_MKDIR, r.auth, &nfs3.MKDIR3args{Where: nfs3.Diropargs3{Dir: fh(dir), Name: []byte("d")}})
	}
	// ask sends a call from an address and answers the status.
	ask := func(from string, call []byte) nfs3.Nfsstat3 {
		c := dialFrom(t, from, r.addr)
		defer func() { _ = c.Close() }() // it has its answer
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(call); err != nil {
			t.Fatal(err)
		}
		var head [4 + 24 + 4]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			t.Fatal(err)
		}
		return nfs3.Nfsstat3(binary.BigEndian.Uint32(head[28:]))
	}
	if st := ask("127.0.0.3", mkdir(1, r.root)); st != nfs3.NFS3_OK {
		t.Fatal(st)
	}
	for i := range 4200 {
		if st := ask(fmt.Sprintf("127.1.%d.%d", i/250, i%250+1), mkdir(7, r.root)); st != nfs3.NFS3ERR_ACCES {
			t.Fatal(st)
		}
	}
	altered := bytes.Clone(r.root)
	altered[len(altered)-1] ^= 1
	for i := range uint32(5) { // of an admitted client
		if st := ask("127.0.0.2", mkdir(100+i, altered)); st != nfs3.NFS3ERR_STALE {
			t.Fatal(st)
		}
	}
	if st := ask("127.0.0.3", mkdir(1, r.root)); st != nfs3.NFS3_OK {
		t.Errorf("a retransmission is executed again: %v", st)
	}
	if st := r.srv.Stats().Replies; st.Replies != 1 {
		t.Errorf("%d replies are remembered, of one call", st.Replies)
	}
}

// TestStrangersRequests has addresses that no rule admits begin large requests and not
// end them: they have a small share, and a large WRITE of an admitted client has room.
func TestStrangersRequests(t *testing.T) {
	const size, conns, share = 1 << 20, 60, 4 << 20
	fs := memfs.New(memfs.Options{Mode: 0o777})
	r := serve(t, fs, nfsserver.Options{Exports: admitting(t, fs, "127.0.0.1"), MaxRequestBytes: 32 << 20})
	h := r.file(r.root, "f", 0o644, "")
	begun := rawCall(t, 1, nfs3.NFSPROC3_WRITE, r.auth, &nfs3.WRITE3args{File: fh(h), Count: size, Data: make([]byte, size)})[:8<<10]
	before := r.srv.Stats().RPC.BytesIn
	for i := range conns {
		if _, err := dialFrom(t, fmt.Sprint("127.0.0.", 2+i%2), r.addr).Write(begun); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all of them have begun", func() bool { return r.srv.Stats().RPC.BytesIn >= before+conns*4096 })
	if n := r.srv.Stats().RPC.RequestBytes; n > share {
		t.Errorf("strangers have %d bytes of memory for requests", n)
	}
	if res := r.write(h, 0, noise(size), nfs3.UNSTABLE); res.Status != nfs3.NFS3_OK || res.Resok.Count != size {
		t.Errorf("another's WRITE: %v", res.Status)
	}
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

func vfsHandle(t testing.TB, b []byte) vfs.Handle {
	t.Helper()
	h, err := vfs.MakeHandle(b)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
