package rpcfault

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/nfsbox/nfsbox/xdr"
)

const (
	markBytes    = 4
	lastFragment = 1 << 31

	msgCall       = 0
	msgReply      = 1
	rpcVersion    = 2
	replyAccepted = 0
	acceptSuccess = 0
	maxAuthBody   = 400 // RFC 5531, section 8.2
)

// errRecord says that a peer violates record marking, or exceeds its bounds.
var errRecord = errors.New("rpcfault: not a record")

// readRecord reads the next record, without its marks. io.EOF is a stream that
// ended between two records.
func readRecord(r io.Reader) ([]byte, error) {
	var rec []byte
	for first, empty := true, 0; ; first = false {
		var mark [markBytes]byte
		if _, err := io.ReadFull(r, mark[:]); err != nil {
			if !first && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		word := binary.BigEndian.Uint32(mark[:])
		size := int64(word &^ lastFragment)
		if size+int64(len(rec)) > MaxRecord {
			return nil, fmt.Errorf("%w: %d bytes or more", errRecord, size+int64(len(rec)))
		}
		if empty++; word != 0 {
			empty = 0
		}
		if empty > maxEmpty {
			return nil, fmt.Errorf("%w: more than %d empty fragments in a row", errRecord, maxEmpty)
		}
		var err error
		if rec, err = readFragment(r, rec, int(size)); err != nil {
			return nil, err
		}
		if word&lastFragment != 0 {
			return rec, nil
		}
	}
}

// readFragment appends size bytes of r to rec, which grows with what has come.
func readFragment(r io.Reader, rec []byte, size int) ([]byte, error) {
	for size > 0 {
		step := min(size, max(growStep, len(rec)))
		at := len(rec)
		rec = append(rec, make([]byte, step)...)
		if _, err := io.ReadFull(r, rec[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		size -= step
	}
	return rec, nil
}

// appendRecord appends rec in fragments of at most size bytes, or as one if size is 0, with so
// many empty ones before each. claim, if it is not negative, is what the last fragment's mark
// says of its length, true or not.
func appendRecord(b, rec []byte, size, empty, claim int) []byte {
	for size > 0 && len(rec) > size {
		b = append(b, make([]byte, markBytes*empty)...)
		b = xdr.AppendUint32(b, uint32(size))
		b = append(b, rec[:size]...)
		rec = rec[size:]
	}
	if claim < 0 {
		claim = len(rec)
	}
	b = append(b, make([]byte, markBytes*empty)...)
	b = xdr.AppendUint32(b, lastFragment|uint32(claim)&^lastFragment)
	return append(b, rec...)
}

// Head is what the proxy knows of a message.
type Head struct {
	XID   uint32
	Reply bool
	// Program, Version and Proc are the call's. A reply has those of the call
	// that it answers, or zeros if no such call is known.
	Program, Version, Proc uint32
	// Body is where the arguments or results begin in the record: its end, if
	// it has none.
	Body int
}

// parseHead reads the head of a message; ok is false if it has none.
func parseHead(rec []byte) (h Head, ok bool) {
	var d xdr.Decoder
	d.Reset(rec)
	h.XID = d.Uint32()
	body := true
	switch kind := d.Uint32(); {
	case d.Err() != nil:
	case kind == msgCall:
		ok = h.call(&d)
	case kind == msgReply:
		h.Reply, ok = true, true
		body = results(&d)
	}
	if ok = ok && d.Err() == nil; !ok {
		return Head{}, false
	}
	h.Body = len(rec)
	if body {
		h.Body -= d.Len()
	}
	return h, true
}

// call consumes a call up to its arguments.
func (h *Head) call(d *xdr.Decoder) bool {
	version := d.Uint32()
	h.Program, h.Version, h.Proc = d.Uint32(), d.Uint32(), d.Uint32()
	skipAuth(d)
	skipAuth(d)
	return version == rpcVersion
}

// results consumes a reply up to its results, and reports whether it has any.
func results(d *xdr.Decoder) bool {
	if d.Uint32() != replyAccepted {
		return false
	}
	skipAuth(d)
	return d.Uint32() == acceptSuccess
}

func skipAuth(d *xdr.Decoder) {
	d.Uint32()
	d.Opaque("body of opaque_auth", maxAuthBody)
}
