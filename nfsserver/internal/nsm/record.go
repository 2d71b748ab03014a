package nsm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"

	"github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/xdr"
)

// A file is a magic, a version, what it is about, and a checksum of all that.
const (
	magic   = "nfsboxSM"
	version = 1

	sumBytes = 4

	// maxFile is longer than any file of ours: a longer one is not read.
	maxFile = 2 * nsm.SM_MAXSTRLEN
)

// maxAddr bounds an address in its text form, zone included.
const maxAddr = 128

var (
	errDamaged = errors.New("damaged, or none of ours")
	// ErrVersion says that a later version of this program has written the state
	// directory; nothing in it has been touched.
	ErrVersion = errors.New("written by a later version")
)

// seal puts what every file has around body.
func seal(body []byte) []byte {
	b := append([]byte(magic), 0, 0, 0, version)
	b = append(b, body...)
	return append(b, sum(b)...)
}

func sum(b []byte) []byte {
	return binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// unseal returns the body of a file, borrowed.
func unseal(b []byte) ([]byte, error) {
	const head = len(magic) + 4
	if len(b) < head+sumBytes || string(b[:len(magic)]) != magic {
		return nil, errDamaged
	}
	end := len(b) - sumBytes
	if !bytes.Equal(sum(b[:end]), b[end:]) {
		return nil, errDamaged
	}
	if v := binary.BigEndian.Uint32(b[len(magic):]); v != version {
		return nil, fmt.Errorf("%w (%d)", ErrVersion, v)
	}
	return b[head:end], nil
}

func encodeState(n uint32) []byte { return seal(xdr.AppendUint32(nil, n)) }

func decodeState(b []byte) (uint32, error) {
	body, err := unseal(b)
	if err != nil {
		return 0, err
	}
	d := xdr.NewDecoder(body)
	n := d.Uint32()
	if d.Finish() != nil || n&1 == 0 {
		return 0, errDamaged
	}
	return n, nil
}

func encodeHost(h *Host) []byte {
	b := xdr.AppendOpaque(nil, []byte(h.Name))
	b = xdr.AppendOpaque(b, []byte(text(h.Addr)))
	return seal(xdr.AppendOpaque(b, []byte(text(h.Local))))
}

func decodeHost(b []byte) (h Host, err error) {
	body, err := unseal(b)
	if err != nil {
		return h, err
	}
	d := xdr.NewDecoder(body)
	h.Name = string(d.Opaque("name", nsm.SM_MAXSTRLEN))
	addr, local := string(d.Opaque("addr", maxAddr)), string(d.Opaque("local", maxAddr))
	if d.Finish() != nil || h.Name == "" {
		return h, errDamaged
	}
	if h.Addr, err = parse(addr); err == nil {
		h.Local, err = parse(local)
	}
	return h, err
}

// text is an address as it stands in a file; the zero Addr is the empty string.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func parse(s string) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, errDamaged
	}
	return a, nil
}
