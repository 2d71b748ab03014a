//go:build linux

package outsider

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// The programs and procedures that are spoken here (RFC 1813, RFC 1833).
const (
	progNFS   = 100003
	progMount = 100005
	progNLM   = 100021

	mountMNT = 1

	nfsGETATTR  = 1
	nfsSETATTR  = 2
	nfsLOOKUP   = 3
	nfsREAD     = 6
	nfsWRITE    = 7
	nfsCREATE   = 8
	nfsREMOVE   = 12
	nfsREADDIR  = 16
	nfsCOMMIT   = 21
	nlmLOCK     = 2
	nlmUNLOCK   = 4
	nlmTESTMSG  = 6
	statusOK    = 0
	statusPERM  = 1
	statusNOENT = 2
	statusACCES = 13
	statusEXIST = 17
	statusINVAL = 22
	statusSTALE = 70
	statusJUKE  = 10008

	statusNOTSUPP = 10004
)

// peer is a connection that speaks RPC (RFC 5531), byte by byte, as one user.
type peer struct {
	conn     net.Conn
	uid, gid uint32
	machine  string
}

var xids atomic.Uint32

// from connects from an address of loopback, and a port that takes no privilege.
func (s *server) from(address string) (*peer, error) {
	from := &net.TCPAddr{IP: net.ParseIP(address)}
	c, err := net.DialTCP("tcp", from, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: s.port})
	if err != nil {
		return nil, err
	}
	return &peer{conn: c, machine: "outsider"}, nil
}

// dial connects from 127.0.0.1, as uid.
func (s *server) dial(uid uint32) *peer {
	s.b.Helper()
	p, err := s.from("127.0.0.1")
	s.b.no(err)
	s.b.Cleanup(func() { _ = p.conn.Close() })
	p.uid, p.gid = uid, uid
	return p
}

func u32(b []byte, v ...uint32) []byte {
	for _, n := range v {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

func u64(b []byte, v ...uint64) []byte {
	for _, n := range v {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func opaque(b []byte, p []byte) []byte {
	b = append(u32(b, uint32(len(p))), p...)
	return append(b, make([]byte, (4-len(p)%4)%4)...)
}

// message is a call as it goes over the wire, in one fragment.
func (p *peer) message(prog, vers, proc uint32, args []byte) []byte {
	cred := u32(nil, 0)
	cred = opaque(cred, []byte(p.machine))
	cred = u32(cred, p.uid, p.gid, 0)
	m := u32(nil, 0, xids.Add(1), 0, 2, prog, vers, proc, 1)
	m = opaque(m, cred)
	m = append(u32(m, 0, 0), args...)
	binary.BigEndian.PutUint32(m, 1<<31|uint32(len(m)-4))
	return m
}

// send sends a call and waits for nothing.
func (p *peer) send(prog, vers, proc uint32, args []byte) error {
	_, err := p.conn.Write(p.message(prog, vers, proc, args))
	return err
}

// errRefused is a call that RPC itself refused.
var errRefused = errors.New("the call was refused by RPC")

// receive reads the next reply's results.
func (p *peer) receive() (reader, error) {
	if err := p.conn.SetReadDeadline(time.Now().Add(patience / 2)); err != nil {
		return nil, err
	}
	var reply []byte
	for last := false; !last; {
		var mark [4]byte
		if _, err := io.ReadFull(p.conn, mark[:]); err != nil {
			return nil, err
		}
		head := binary.BigEndian.Uint32(mark[:])
		last = head&(1<<31) != 0
		part := make([]byte, head&(1<<31-1))
		if _, err := io.ReadFull(p.conn, part); err != nil {
			return nil, err
		}
		reply = append(reply, part...)
	}
	r := reader(reply)
	_, _ = r.u32(), r.u32() // xid, direction
	if accepted := r.u32(); accepted != 0 {
		return nil, fmt.Errorf("%w: denied, %d", errRefused, r.u32())
	}
	_ = r.u32() // the verifier's kind
	_ = r.opaque()
	if status := r.u32(); status != 0 {
		return nil, fmt.Errorf("%w: accept_stat %d", errRefused, status)
	}
	return r, nil
}

// call makes a call and returns its results.
func (p *peer) call(prog, vers, proc uint32, args []byte) (reader, error) {
	if err := p.send(prog, vers, proc, args); err != nil {
		return nil, err
	}
	return p.receive()
}

// reader takes apart what came. What is missing is zero: the checks then fail.
type reader []byte

func (r *reader) u32() uint32 {
	if len(*r) < 4 {
		*r = nil
		return 0
	}
	v := binary.BigEndian.Uint32(*r)
	*r = (*r)[4:]
	return v
}

func (r *reader) opaque() []byte {
	n := int(r.u32())
	padded := (n + 3) &^ 3
	if padded > len(*r) {
		*r = nil
		return nil
	}
	p := (*r)[:n]
	*r = (*r)[padded:]
	return p
}

// mnt mounts path and returns its handle.
func (p *peer) mnt(path string) (handle []byte, status uint32, err error) {
	r, err := p.call(progMount, 3, mountMNT, opaque(nil, []byte(path)))
	if err != nil {
		return nil, 0, err
	}
	if status = r.u32(); status != statusOK {
		return nil, status, nil
	}
	return r.opaque(), statusOK, nil
}

// root mounts what s serves.
func (p *peer) root(b *box) []byte {
	b.Helper()
	handle, status, err := p.mnt("/")
	if err != nil || status != statusOK {
		b.Fatalf("MNT: status %d, %v", status, err)
	}
	return handle
}

// nfs makes a call of NFS and returns its status and what follows.
func (p *peer) nfs(proc uint32, args []byte) (status uint32, rest reader, err error) {
	r, err := p.call(progNFS, 3, proc, args)
	if err != nil {
		return 0, nil, err
	}
	status = r.u32()
	return status, r, nil
}

// dirop is a name in a directory.
func dirop(dir []byte, name string) []byte { return opaque(opaque(nil, dir), []byte(name)) }

func (p *peer) lookup(dir []byte, name string) (handle []byte, status uint32, err error) {
	status, r, err := p.nfs(nfsLOOKUP, dirop(dir, name))
	return r.opaque(), status, err
}

// create makes a file, guarded, of this mode.
func (p *peer) create(dir []byte, name string, mode uint32) (handle []byte, status uint32, err error) {
	args := u32(dirop(dir, name), 1 /* GUARDED */, 1, mode, 0, 0, 0, 0, 0)
	status, r, err := p.nfs(nfsCREATE, args)
	if err != nil || status != statusOK || r.u32() == 0 {
		return nil, status, err
	}
	return r.opaque(), status, nil
}

// Stability of a write (RFC 1813, stable_how).
const (
	unstable = 0
	fileSync = 2
)

func writeArgs(file []byte, off uint64, stable uint32, data []byte) []byte {
	args := u64(opaque(nil, file), off)
	return opaque(u32(args, uint32(len(data)), stable), data)
}

func (p *peer) write(file []byte, off uint64, stable uint32, data []byte) (status uint32, err error) {
	status, _, err = p.nfs(nfsWRITE, writeArgs(file, off, stable, data))
	return status, err
}

func readArgs(file []byte, off uint64, n uint32) []byte {
	return u32(u64(opaque(nil, file), off), n)
}

func (p *peer) read(file []byte, n uint32) (data []byte, status uint32, err error) {
	status, r, err := p.nfs(nfsREAD, readArgs(file, 0, n))
	if err != nil || status != statusOK {
		return nil, status, err
	}
	if r.u32() != 0 { // attributes
		r = r[min(84, len(r)):]
	}
	_, _ = r.u32(), r.u32() // count, eof
	return r.opaque(), status, nil
}

// attr are the attributes that are looked at here.
type attr struct {
	mode, uid, gid uint32
	size           uint64
}

func (p *peer) getattr(file []byte) (a attr, status uint32, err error) {
	status, r, err := p.nfs(nfsGETATTR, opaque(nil, file))
	if err != nil || status != statusOK {
		return a, status, err
	}
	_ = r.u32() // type
	a.mode = r.u32()
	_ = r.u32() // links
	a.uid, a.gid = r.u32(), r.u32()
	a.size = uint64(r.u32())<<32 | uint64(r.u32())
	return a, status, nil
}

// lockArgs are those of NLM's LOCK, which does not wait and claims nothing back.
func lockArgs(caller string, file []byte, owner string, off uint64) []byte {
	args := opaque(nil, []byte("cookie"))
	args = u32(args, 0, 1)              // block, exclusive
	args = opaque(args, []byte(caller)) // alock
	args = opaque(args, file)           //
	args = opaque(args, []byte(owner))  //
	args = u64(u32(args, 1), off, 1)    // svid, offset, length
	return u32(args, 0 /* reclaim */, 3 /* state */)
}

// lock takes a lock of one byte. status 0 is granted, 2 no room for locks.
func (p *peer) lock(caller string, file []byte, owner string, off uint64) (status uint32, err error) {
	r, err := p.call(progNLM, 4, nlmLOCK, lockArgs(caller, file, owner, off))
	if err != nil {
		return 0, err
	}
	_ = r.opaque() // cookie
	return r.u32(), nil
}
