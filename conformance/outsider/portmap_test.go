//go:build linux

package outsider

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

const (
	progPortmap = 100000
	pmapGETPORT = 3
	overTCP     = 6
	overUDP     = 17
)

// datagram makes a call over UDP, and returns the accept_stat.
func (b *box) datagram(conn net.Conn, call []byte) (stat uint32) {
	b.Helper()
	_, err := conn.Write(call[4:])
	b.no(err)
	b.no(conn.SetReadDeadline(time.Now().Add(patience / 4)))
	answer := make([]byte, 1000)
	n, err := conn.Read(answer)
	b.no(err)
	r := reader(answer[:n])
	_, _, _, _ = r.u32(), r.u32(), r.u32(), r.u32() // xid, direction, accepted, the verifier's kind
	_ = r.opaque()
	return r.u32()
}

// TestPortMapperAlone: at the port mapper's own address nothing else answers, over TCP
// and UDP, and it leads to where the programs are.
func TestPortMapperAlone(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	s := b.serve(b.path("srv"), "--portmap-listen=127.0.0.1:0")
	port := func(p *peer, prog, prot uint32) uint32 {
		r, err := p.call(progPortmap, 2, pmapGETPORT, u32(nil, prog, 3, prot, 0))
		b.no(err)
		return r.u32()
	}
	at := fmt.Sprintf("127.0.0.1:%d", port(s.dial(0), progPortmap, overTCP))
	tcp, err := net.Dial("tcp", at)
	b.no(err)
	defer func() { _ = tcp.Close() }()
	udp, err := net.Dial("udp", at)
	b.no(err)
	defer func() { _ = udp.Close() }()
	p := &peer{conn: tcp, machine: "outsider"}
	for _, prog := range []uint32{progNFS, progMount, progNLM} {
		if got := port(p, prog, overTCP); got != uint32(s.port) {
			t.Errorf("GETPORT of program %d over TCP: %d, want %d", prog, got, s.port)
		}
		if got := port(p, prog, overUDP); got != 0 {
			t.Errorf("GETPORT of program %d over UDP, where it is not: %d", prog, got)
		}
	}
	null := p.message(progPortmap, 2, 0, nil)
	if stat := b.datagram(udp, null); stat != 0 {
		t.Errorf("the port mapper over UDP: accept_stat %d", stat)
	}
	const unavailable = 1 // PROG_UNAVAIL
	for _, x := range []struct {
		what             string
		prog, vers, proc uint32
		args             []byte
	}{
		{"NFS", progNFS, 3, 0, nil},
		{"MNT", progMount, 3, mountMNT, opaque(nil, []byte("/"))},
		{"FREE_ALL", progNLM, 4, nlmFREEALL, u32(opaque(nil, []byte("host")), 9)},
		{"SM_NOTIFY", progNSM, 1, nsmNOTIFY, u32(opaque(nil, []byte("host")), 9)},
	} {
		if _, err := p.call(x.prog, x.vers, x.proc, x.args); !errors.Is(err, errRefused) {
			t.Errorf("%s over TCP at the port mapper's address is answered: %v", x.what, err)
		}
		if stat := b.datagram(udp, p.message(x.prog, x.vers, x.proc, x.args)); stat != unavailable {
			t.Errorf("%s over UDP at the port mapper's address: accept_stat %d, want %d", x.what, stat, unavailable)
		}
	}
}
