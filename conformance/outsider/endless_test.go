//go:build linux

package outsider

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// endless is a server that answers as the one behind it does, but for the calls of one
// procedure of NFS: its replies to those begin well and do not end.
type endless struct {
	upstream  string
	procedure uint32
	head      []byte // what a reply begins with, behind the transaction number
	more      []byte // what follows, again and again
	most      int64  // at which a reply breaks off after all, and the test has failed
	sent      atomic.Int64
	work      sync.WaitGroup
}

// start listens until the test ends, and returns the address.
func (e *endless) start(b *box) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	b.no(err)
	e.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.work.Go(func() { e.serve(c) })
		}
	})
	b.Cleanup(func() { _ = l.Close(); e.work.Wait() })
	return l.Addr().String()
}

// serve passes records on, one call after the other, up to the call whose reply does not end.
func (e *endless) serve(down net.Conn) {
	defer func() { _ = down.Close() }()
	up, err := net.Dial("tcp", e.upstream)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	for {
		call, err := oneRecord(down)
		if err != nil {
			return
		}
		r := reader(call[4:])
		xid := r.u32()
		_, _ = r.u32(), r.u32() // direction, version
		if prog, _, proc := r.u32(), r.u32(), r.u32(); prog == progNFS && proc == e.procedure {
			e.flood(down, xid)
			return
		}
		if _, err := up.Write(call); err != nil {
			return
		}
		reply, err := oneRecord(up)
		if err != nil {
			return
		}
		if _, err := down.Write(reply); err != nil {
			return
		}
	}
}

// flood sends the reply until the client hangs up.
func (e *endless) flood(c net.Conn, xid uint32) {
	head := append(u32(nil, 0, xid), e.head...)
	binary.BigEndian.PutUint32(head, uint32(len(head)-4))
	many := bytes.Repeat(e.more, max(1, 64<<10/len(e.more)))
	for part := head; e.sent.Load() < e.most; part = many {
		n, err := c.Write(part)
		e.sent.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// oneRecord reads a record that is in one fragment, with its mark.
func oneRecord(r io.Reader) ([]byte, error) {
	mark := make([]byte, 4)
	if _, err := io.ReadFull(r, mark); err != nil {
		return nil, err
	}
	b := append(mark, make([]byte, binary.BigEndian.Uint32(mark)&(1<<31-1))...)
	_, err := io.ReadFull(r, b[4:])
	return b, err
}

// TestEndlessReplies: a server answers with a record that does not end. The client takes
// in no more of it than the call has asked for, and something beside, and says what is wrong.
func TestEndlessReplies(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), strings.Repeat("x", 100))
	s := b.serve(b.path("srv"))
	const enough = 64 << 20 // two tries of a megabyte in pieces of five bytes, and what sockets hold
	accepted := u32(nil, 1, 0, 0, 0, 0 /* SUCCESS */)
	for _, c := range []struct {
		name      string
		procedure uint32
		args      []string
	}{
		{"LOOKUP", nfsLOOKUP, []string{"cat", "f"}},
		{"READ", nfsREAD, []string{"cat", "f"}},
		{"READDIR", nfsREADDIR, []string{"ls", ""}},
	} {
		for kind, more := range map[string][]byte{
			"long fragments":  append(u32(nil, 60<<10), make([]byte, 60<<10)...),
			"a byte each":     {0, 0, 0, 1, 0},
			"empty fragments": append([]byte{0, 0, 0, 1, 0}, make([]byte, 4*200)...),
		} {
			t.Run(fmt.Sprint(c.name, "/", kind), func(t *testing.T) {
				b := &box{T: t, dir: b.dir, bin: b.bin}
				e := &endless{
					upstream: fmt.Sprint("127.0.0.1:", s.port), procedure: c.procedure, more: more, most: 1 << 30,
					head: u32(accepted, statusOK, 0 /* no attributes */, 0, 1, 0 /* no data, at the end */),
				}
				r := b.run(c.args[0], fmt.Sprint("nfs://", e.start(b), "/", c.args[1]))
				if r.status == 0 || !strings.Contains(r.stderr, "breaks the RPC protocol") {
					t.Errorf("exit status %d\n%s%s", r.status, r.stdout, r.stderr)
				}
				if n := e.sent.Load(); n > enough {
					t.Errorf("the client has taken in %d bytes", n)
				}
			})
		}
	}
}
