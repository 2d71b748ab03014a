package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	entryMagic   = "nfsbox-e"
	entryVersion = 1

	// headerSize is the part of an entry's first page before the table, in bytes.
	headerSize = 1 << 10
	pageHead   = 4 + 4 + 8 // checksum, number, salt
	pageBits   = perPage / 8
	pageSize   = pageHead + pageBits + 4*perPage // of block-headerSize

	// unchecked is the flag of an entry without checksums.
	unchecked = 1
)

// errDamaged is what decoders say of bytes that no store has written.
var errDamaged = errors.New("damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Key names a file of a server. It says nothing of how it is mounted.
type Key struct {
	Server string // that has it: a host and port
	Mark   string // what the user gave with fsc=
	FSID   [2]uint64
	Handle vfs.Handle
}

// Version is what a file was when its bytes were read. All of it has to be the same for
// bytes to be used.
type Version struct {
	Size         uint64
	Change       uint64
	Mtime, Ctime time.Time
}

// Equal reports whether both are of one version.
func (v *Version) Equal(o *Version) bool {
	return v.Size == o.Size && v.Change == o.Change && v.Mtime.Equal(o.Mtime) && v.Ctime.Equal(o.Ctime)
}

// header is what an entry says of itself.
type header struct {
	key     Key
	version Version
	label   string // the file's name when it was opened, for people
	granule int    // bytes
	salt    uint64 // begins the checksums of granules
	flags   uint32
}

// granules is how many there are in the file.
func (h *header) granules() int {
	return int((h.version.Size + uint64(h.granule) - 1) / uint64(h.granule))
}

// pages is how many pages the header and the table take.
func (h *header) pages() int { return max(1, (h.granules()+perPage-1)/perPage) }

// fits reports whether the header can be written, and the table is within its bound.
func (h *header) fits() bool {
	return len(h.key.Server) <= maxName && len(h.key.Mark) <= maxName && !h.key.Handle.IsZero() &&
		h.version.Size <= uint64(h.granule)*maxGranules
}

// sum is the checksum of granule g.
func (h *header) sum(g int, p []byte) uint32 {
	var seed [12]byte
	binary.BigEndian.PutUint64(seed[:], h.salt)
	binary.BigEndian.PutUint32(seed[8:], uint32(g))
	return crc32.Update(crc32.Checksum(seed[:], castagnoli), castagnoli, p)
}

func appendText(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

// put writes h into the first headerSize bytes of page.
func (h *header) put(page []byte) {
	b := append(page[:0], entryMagic...)
	b = binary.BigEndian.AppendUint32(b, entryVersion)
	b = binary.BigEndian.AppendUint32(b, h.flags)
	b = binary.BigEndian.AppendUint32(b, uint32(h.granule))
	b = binary.BigEndian.AppendUint64(b, h.salt)
	b = binary.BigEndian.AppendUint64(b, h.version.Size)
	b = binary.BigEndian.AppendUint64(b, h.version.Change)
	b = appendTime(b, h.version.Mtime)
	b = appendTime(b, h.version.Ctime)
	b = binary.BigEndian.AppendUint64(b, h.key.FSID[0])
	b = binary.BigEndian.AppendUint64(b, h.key.FSID[1])
	b = appendText(b, string(h.key.Handle.Bytes()))
	b = appendText(b, h.key.Server)
	b = appendText(b, h.key.Mark)
	b = appendText(b, h.label)
	clear(page[len(b) : headerSize-4])
	binary.BigEndian.PutUint32(page[headerSize-4:], crc32.Checksum(page[:headerSize-4], castagnoli))
}

// reader takes a header apart.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad = true
		return make([]byte, n) // n is small: see the callers
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) text() string   { return string(r.take(int(r.take(1)[0]))) }

func (r *reader) time() time.Time {
	sec, nsec := int64(r.uint64()), r.uint32()
	r.bad = r.bad || nsec >= 1e9
	return time.Unix(sec, int64(nsec))
}

// parseHeader reads what put has written.
func parseHeader(page []byte) (*header, error) {
	if len(page) < headerSize || string(page[:len(entryMagic)]) != entryMagic ||
		binary.BigEndian.Uint32(page[headerSize-4:]) != crc32.Checksum(page[:headerSize-4], castagnoli) {
		return nil, errDamaged
	}
	r := &reader{b: page[len(entryMagic) : headerSize-4]}
	if v := r.uint32(); v != entryVersion {
		return nil, fmt.Errorf("version %d: %w", v, errDamaged)
	}
	h := &header{flags: r.uint32(), granule: int(r.uint32()), salt: r.uint64()}
	h.version = Version{Size: r.uint64(), Change: r.uint64(), Mtime: r.time(), Ctime: r.time()}
	h.key.FSID = [2]uint64{r.uint64(), r.uint64()}
	handle, err := vfs.MakeHandle([]byte(r.text()))
	h.key.Handle, h.key.Server, h.key.Mark, h.label = handle, r.text(), r.text(), r.text()
	if err != nil || r.bad || !goodGranule(h.granule) || !h.fits() {
		return nil, errDamaged
	}
	return h, nil
}

func goodGranule(n int) bool { return n >= MinGranule && n <= MaxGranule && n&(n-1) == 0 }

// table says which granules are there, and what their checksums are.
type table struct {
	bits []uint64 // a bit for each granule; 64 to a word
	sums []uint32
}

func newTable(granules int) table {
	return table{bits: make([]uint64, (granules+63)/64), sums: make([]uint32, granules)}
}

func (t *table) has(g int) bool { return t.bits[g/64]&(1<<(g%64)) != 0 }

// putPage writes page n of the table to where it is in its page of the entry.
func (t *table) putPage(page []byte, n int, salt uint64) {
	p := page[headerSize : headerSize+pageSize]
	clear(p)
	binary.BigEndian.PutUint32(p[4:], uint32(n))
	binary.BigEndian.PutUint64(p[8:], salt)
	bits, sums := p[pageHead:pageHead+pageBits], p[pageHead+pageBits:]
	for i := range min(perPage, len(t.sums)-n*perPage) {
		if g := n*perPage + i; t.has(g) {
			bits[i/8] |= 1 << (i % 8)
			binary.BigEndian.PutUint32(sums[4*i:], t.sums[g])
		}
	}
	binary.BigEndian.PutUint32(p, crc32.Checksum(p[4:], castagnoli))
}

// takePage reads what putPage has written. A page that is all zeros was never written, and
// has no granules.
func (t *table) takePage(page []byte, n int, salt uint64) error {
	if len(page) < headerSize+pageSize {
		return errDamaged
	}
	p := page[headerSize : headerSize+pageSize]
	if n > 0 && allZero(p) {
		return nil
	}
	if binary.BigEndian.Uint32(p) != crc32.Checksum(p[4:], castagnoli) ||
		binary.BigEndian.Uint32(p[4:]) != uint32(n) || binary.BigEndian.Uint64(p[8:]) != salt {
		return errDamaged
	}
	bits, sums := p[pageHead:pageHead+pageBits], p[pageHead+pageBits:]
	for i := range min(perPage, len(t.sums)-n*perPage) {
		if bits[i/8]&(1<<(i%8)) != 0 {
			g := n*perPage + i
			t.bits[g/64] |= 1 << (g % 64)
			t.sums[g] = binary.BigEndian.Uint32(sums[4*i:])
		}
	}
	return nil
}

func allZero(p []byte) bool {
	for _, c := range p {
		if c != 0 {
			return false
		}
	}
	return true
}
