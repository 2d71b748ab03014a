package v3

import (
	"encoding/binary"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// page is the result of READDIR or READDIRPLUS. The entries stay in the reply, and are decoded one by
// one when they are delivered. All of a page is checked before its first entry is delivered. So a
// truncated reply is an error without half a page before it, later steps need no checks, and the next
// page can be asked for during delivery, because its cookie is known.
type page struct {
	plus   bool // of a READDIRPLUS
	status nfs3.Nfsstat3
	verf   vfs.Verifier
	list   xdr.Decoder // the entries
	reply  oncrpc.Reply

	entries int
	bytes   int    // size of the entries
	last    uint64 // cookie of the last one
	eof     bool   // no entry follows
	passed  int    // entries at the beginning that were delivered before
}

func (p *page) Stat() *nfs3.Nfsstat3 { return &p.status }

// DecodeXDR takes the whole rest of the record as entries; scan checks that.
func (p *page) DecodeXDR(d *xdr.Decoder) error {
	p.status = nfs3.Nfsstat3(d.Int32())
	var dirAttr nfs3.PostOpAttr
	if err := dirAttr.DecodeXDR(d); err != nil || p.status != nfs3.NFS3_OK {
		return err
	}
	copy(p.verf[:], d.Fixed(len(p.verf)))
	p.list.Reset(d.Block(d.Len()))
	return d.Err()
}

// release releases the reply, and with it the entries.
func (p *page) release() {
	p.reply.Release()
	*p = page{}
}

func (p *page) proc() *xdr.Proc {
	if p.plus {
		return nfs3.NFSPROC3_READDIRPLUS
	}
	return nfs3.NFSPROC3_READDIR
}

// Sizes of an entry's parts on the wire (RFC 1813, sections 3.3.16 and 3.3.17), without those of
// variable length.
const (
	entryHead = 4 + 8 + 4 // "entry follows", fileid, length of the name
	entryTail = 8         // cookie
	attrSize  = 84        // fattr3
)

// scan goes over the entries, from length to length, and finds their end. An error of package xdr says
// that they are malformed. Without one, the generated decoders accept them.
func (p *page) scan() error {
	b := p.list.Rest()
	p.bytes = len(b)
	for {
		if len(b) < 8 {
			return xdr.ErrShort
		}
		follows := binary.BigEndian.Uint32(b)
		if follows == 0 {
			break
		}
		if follows != 1 {
			return &xdr.ValueError{What: "bool", Value: int64(follows)}
		}
		n, err := p.entrySize(b)
		if err != nil {
			return err
		}
		p.entries++
		b = b[n:]
	}
	eof := binary.BigEndian.Uint32(b[4:])
	if eof > 1 {
		return &xdr.ValueError{What: "bool", Value: int64(eof)}
	}
	if p.eof = eof == 1; len(b) > 8 {
		return xdr.ErrTrailing
	}
	return nil
}

// entrySize is the size of the entry at the start of b. It records the entry's cookie.
func (p *page) entrySize(b []byte) (int, error) {
	if len(b) < entryHead {
		return 0, xdr.ErrShort
	}
	name := (uint64(binary.BigEndian.Uint32(b[entryHead-4:])) + 3) &^ 3
	if uint64(len(b)) < entryHead+name+entryTail {
		return 0, xdr.ErrShort
	}
	n := entryHead + int(name) + entryTail
	p.last = binary.BigEndian.Uint64(b[n-entryTail:])
	if !p.plus {
		return n, nil
	}
	return plusSize(b, n)
}

// plusSize is the size of the READDIRPLUS entry at the start of b. Its first n bytes are those that a
// READDIR has as well.
func plusSize(b []byte, n int) (int, error) {
	attrs, n, err := flag(b, n)
	if err != nil {
		return 0, err
	}
	handle, n, err := flag(b, n+int(attrs)*attrSize)
	if err != nil || handle == 0 {
		return n, err
	}
	if len(b)-n < 4 {
		return 0, xdr.ErrShort
	}
	size := binary.BigEndian.Uint32(b[n:])
	if size > vfs.MaxHandleV3 {
		return 0, xdr.CheckLen("nfs_fh3.data", int(size), vfs.MaxHandleV3)
	}
	if n += 4 + int(size+3)&^3; n > len(b) {
		return 0, xdr.ErrShort
	}
	return n, nil
}

// flag is the boolean at b[n:], and the offset after it.
func flag(b []byte, n int) (uint32, int, error) {
	if len(b)-n < 4 {
		return 0, 0, xdr.ErrShort
	}
	v := binary.BigEndian.Uint32(b[n:])
	if v > 1 {
		return 0, 0, &xdr.ValueError{What: "bool", Value: int64(v)}
	}
	return v, n + 4, nil
}
