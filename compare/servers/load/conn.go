package load

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	readBuffer = 1 << 20

	// silence bounds how long a server may answer nothing.
	silence = 30 * time.Second

	// maxReply bounds a record; the longest is a READ of 1 MiB.
	maxReply = 2 << 20
)

// conn is one connection. It belongs to one goroutine.
type conn struct {
	nc   net.Conn
	r    *bufio.Reader
	out  []byte
	rec  []byte
	auth oncrpc.Auth
	xid  uint32
}

func dial(addr string) (*conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	body, err := (&oncrpc.AuthSys{Machine: "load"}).AppendXDR(nil)
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	// Numbers that came before would be answered from the server's memory.
	return &conn{nc: nc, r: bufio.NewReaderSize(nc, readBuffer), auth: oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: body}, xid: rand.Uint32()}, nil
}

// call appends a call to what is written next, and returns its XID.
func (c *conn) call(p *xdr.Proc, args xdr.Appender) (uint32, error) {
	c.xid++
	at := len(c.out)
	b := append(c.out, 0, 0, 0, 0)
	for _, w := range [...]uint32{c.xid, 0, 2, p.Program, p.Version, p.Number, uint32(c.auth.Flavor), uint32(len(c.auth.Body))} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	b = append(b, c.auth.Body...)         // a multiple of four, being XDR
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // the verifier: none
	b, err := args.AppendXDR(b)
	if err != nil {
		return 0, err
	}
	binary.BigEndian.PutUint32(b[at:], 1<<31|uint32(len(b)-at-4))
	c.out = b
	return c.xid, nil
}

func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

// reply reads a reply, whole, and returns its XID and what follows the head: the
// results, which stay valid until the next reply.
func (c *conn) reply() (xid uint32, results []byte, err error) {
	c.rec = c.rec[:0]
	for last := false; !last; {
		var mark [4]byte
		if _, err := io.ReadFull(c.r, mark[:]); err != nil {
			return 0, nil, err
		}
		n := binary.BigEndian.Uint32(mark[:])
		last = n>>31 != 0
		n &= 1<<31 - 1
		if int(n)+len(c.rec) > maxReply {
			return 0, nil, fmt.Errorf("a reply of %d bytes and more", int(n)+len(c.rec))
		}
		at := len(c.rec)
		if cap(c.rec) < at+int(n) {
			c.rec = append(make([]byte, 0, max(2*cap(c.rec), at+int(n))), c.rec...)
		}
		c.rec = c.rec[:at+int(n)]
		if _, err := io.ReadFull(c.r, c.rec[at:]); err != nil {
			return 0, nil, err
		}
	}
	const head = 6 * 4 // with an empty verifier
	b := c.rec
	if len(b) < head || binary.BigEndian.Uint32(b[8:]) != 0 || binary.BigEndian.Uint32(b[16:]) != 0 || binary.BigEndian.Uint32(b[20:]) != 0 {
		return 0, nil, fmt.Errorf("the call was refused: % x", b[:min(len(b), 32)])
	}
	return binary.BigEndian.Uint32(b), b[head:], nil
}

func (c *conn) buffered() bool { return c.r.Buffered() > 4 }
