package callback

import (
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/xdr"
)

const (
	lastFragment = 1 << 31 // in the word before a record, RFC 5531, section 11
	markBytes    = 4

	// maxDatagram is the largest payload of UDP over IPv4.
	maxDatagram = 65507
)

// datagrams lets a client for streams talk over datagrams. It sends each record that is
// written as a datagram without its mark, and each datagram that comes is read as a
// record. One goroutine may read and one write, as with any connection.
type datagrams struct {
	net.Conn
	in   []byte // a record, from which head to the end is still to be read
	head int
	out  []byte // a record not yet written whole
}

// Write sends the records that p completes.
func (d *datagrams) Write(p []byte) (int, error) {
	d.out = append(d.out, p...)
	for len(d.out) >= markBytes {
		mark := binary.BigEndian.Uint32(d.out)
		n := int64(mark &^ lastFragment)
		if mark&lastFragment == 0 || n > maxDatagram {
			return 0, fmt.Errorf("a record of %d bytes or more is no datagram", n)
		}
		end := markBytes + int(n)
		if len(d.out) < end {
			break
		}
		if _, err := d.Conn.Write(d.out[markBytes:end]); err != nil {
			return 0, err
		}
		d.out = d.out[end:]
	}
	return len(p), nil
}

// Read receives a datagram when the one before has been read. Bytes beyond maxReply are
// lost.
func (d *datagrams) Read(p []byte) (int, error) {
	if d.head == len(d.in) {
		if cap(d.in) == 0 {
			d.in = make([]byte, markBytes+maxReply)
		}
		full := d.in[:cap(d.in)]
		n, err := d.Conn.Read(full[markBytes:])
		if err != nil {
			return 0, err
		}
		binary.BigEndian.PutUint32(full, lastFragment|uint32(n))
		d.in, d.head = full[:markBytes+n], 0
	}
	n := copy(p, d.in[d.head:])
	d.head += n
	return n, nil
}

// universal decodes a universal address, of which it keeps the port. The empty
// string, "not registered", has port 0.
type universal struct{ port uint16 }

// maxUniversal is longer than any address that is written so.
const maxUniversal = 128

// DecodeXDR implements xdr.Unmarshaler.
func (u *universal) DecodeXDR(d *xdr.Decoder) error {
	u.port = 0
	addr := string(d.Opaque("r_addr", maxUniversal))
	if d.Err() != nil || addr == "" {
		return d.Err()
	}
	port, ok := UniversalPort(addr)
	if !ok {
		return fmt.Errorf("%q is no universal address", addr)
	}
	u.port = port
	return nil
}

// UniversalPort is the port in an address as RFC 5665, section 5.2.3, writes it:
// its last two numbers.
func UniversalPort(addr string) (port uint16, ok bool) {
	parts := strings.Split(addr, ".")
	if len(parts) < 3 {
		return 0, false
	}
	for _, p := range parts[len(parts)-2:] {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil {
			return 0, false
		}
		port = port<<8 | uint16(n)
	}
	return port, true
}
