package delta

import (
	"encoding/binary"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// packed is an entry in few bytes: its name, its handle, and its attributes as numbers of variable
// length. Some are packed as what sets them apart from others, which they mostly equal. It has no
// Next.
type packed string

// packInto appends an entry's packed form to b. Of a name that is too long it keeps enough for
// vfs.CheckName to refuse it. fsid is that of the others.
func packInto(b []byte, e *vfs.Entry, fsid [2]uint64) []byte {
	b = appendBytes(b, e.Name[:min(len(e.Name), vfs.MaxName+1)])
	b = appendBytes(b, e.Handle.Bytes())
	b = appendBytes(b, []byte(e.Foreign))
	a := &e.Attr
	for _, n := range [...]uint64{
		uint64(a.Valid), uint64(a.Type), uint64(a.Mode), uint64(a.Nlink), uint64(a.UID), uint64(a.GID), a.Size, a.Used,
		a.FileID, a.Rdev, a.FSID[0] ^ fsid[0], a.FSID[1] ^ fsid[1], e.FileID ^ a.FileID, a.Change ^ usual(a),
	} {
		b = binary.AppendUvarint(b, n)
	}
	var before int64
	for _, t := range times(a) {
		if a.Has(t.mask) {
			b = binary.AppendVarint(b, t.at.Unix()-before)
			b = binary.AppendUvarint(b, uint64(t.at.Nanosecond()))
			before = t.at.Unix()
		}
	}
	return b
}

// usual is what Change mostly is: see vfs.Attr.
func usual(a *vfs.Attr) uint64 {
	if !a.Has(vfs.MaskCtime) {
		return 0
	}
	return uint64(a.Ctime.UnixNano())
}

// name is the entry's name.
func (p packed) name() string {
	r := reader(p)
	return r.bytes()
}

// unpack returns the entry.
func (p packed) unpack(fsid [2]uint64) *vfs.Entry {
	r := reader(p)
	e := &vfs.Entry{Name: []byte(r.bytes())}
	if h := r.bytes(); h != "" {
		e.Handle, _ = vfs.MakeHandle([]byte(h)) // it was one
	}
	e.Foreign = r.bytes()
	e.Attr = vfs.Attr{
		Valid: vfs.Mask(r.number()), Type: vfs.Type(r.number()), Mode: uint32(r.number()), Nlink: uint32(r.number()),
		UID: uint32(r.number()), GID: uint32(r.number()), Size: r.number(), Used: r.number(), FileID: r.number(), Rdev: r.number(),
		FSID: [2]uint64{r.number() ^ fsid[0], r.number() ^ fsid[1]},
	}
	e.FileID = r.number() ^ e.Attr.FileID
	change := r.number()
	var before int64
	for _, t := range times(&e.Attr) {
		if e.Attr.Has(t.mask) {
			before += r.signed()
			*t.at = time.Unix(before, int64(r.number()))
		}
	}
	e.Attr.Change = change ^ usual(&e.Attr)
	return e
}

// field is a time among the attributes.
type field struct {
	mask vfs.Mask
	at   *time.Time
}

func times(a *vfs.Attr) [4]field {
	return [...]field{{vfs.MaskAtime, &a.Atime}, {vfs.MaskMtime, &a.Mtime}, {vfs.MaskCtime, &a.Ctime}, {vfs.MaskBtime, &a.Btime}}
}

func appendBytes(b, p []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(p))), p...) }

// reader takes apart what packInto has made, in this process: it is never cut short.
type reader string

func (r *reader) number() uint64 {
	var n uint64
	for i := 0; ; i++ {
		c := (*r)[i]
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			*r = (*r)[i+1:]
			return n
		}
	}
}

// signed reads what binary.AppendVarint has written.
func (r *reader) signed() int64 {
	n := r.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) bytes() string {
	n := r.number()
	s := string((*r)[:n])
	*r = (*r)[n:]
	return s
}
