package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"strings"
)

const (
	magic      = "NFSBOXIX"
	version    = 1
	headerSize = 92

	itemSize  = 24
	blockSize = 16 << 10
	blockKeys = (blockSize - 8) / itemSize

	// maxSparse is how many sparse keys a segment has in memory, 16 bytes each. With more blocks
	// only some of their first keys are among them.
	maxSparse = 1 << 18

	prefix = "index."
	// temporary is the name under which a segment is written.
	temporary = prefix + "tmp"
	// maxNames is how many names of the directory are looked at. A segment beyond is made anew.
	maxNames = 1 << 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// item is a key with the number of its entry.
type item struct{ high, low, entry uint64 }

func toItem(key Key, entry uint64) item {
	return item{binary.BigEndian.Uint64(key[:]), binary.BigEndian.Uint64(key[8:]), entry}
}

func (i item) sameKey(o item) bool { return i.high == o.high && i.low == o.low }

// compare orders items by key, and then by entry.
func (i item) compare(o item) int {
	if i.high != o.high {
		return cmp.Compare(i.high, o.high)
	}
	if i.low != o.low {
		return cmp.Compare(i.low, o.low)
	}
	return cmp.Compare(i.entry, o.entry)
}

func (i item) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, i.high)
	b = binary.BigEndian.AppendUint64(b, i.low)
	return binary.BigEndian.AppendUint64(b, i.entry)
}

func parseItem(b []byte) item {
	return item{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
}

// span is what a header says.
type span struct {
	from, to uint64 // entries of the log
	keys     uint64
	step     uint32
	mark     uint32
}

func (s *span) blocks() uint64 { return (s.keys + blockKeys - 1) / blockKeys }

func (s *span) sparseKeys() uint64 { return (s.blocks() + uint64(s.step) - 1) / uint64(s.step) }

func (s *span) name() string { return fmt.Sprintf("%s%d-%d", prefix, s.from, s.to) }

// stepFor is the step of a segment of up to keys.
func stepFor(keys uint64, sparse int) uint32 {
	s := span{keys: keys, step: 1}
	for s.sparseKeys() > uint64(sparse) {
		s.step *= 2
	}
	return s.step
}

func (s *span) header(identity [32]byte, sum uint32) []byte {
	b := append(make([]byte, 0, blockSize), magic...)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, s.step)
	b = append(b, identity[:]...)
	for _, n := range [...]uint64{s.from, s.to, s.keys, s.blocks()} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint32(b, s.mark)
	b = binary.BigEndian.AppendUint32(b, sum)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:blockSize]
}

// parseHeader decodes a header of headerSize bytes. It vouches for all but the mark.
func parseHeader(b []byte, identity [32]byte) (s span, sum uint32, err error) {
	s.step = binary.BigEndian.Uint32(b[12:])
	s.from, s.to = binary.BigEndian.Uint64(b[48:]), binary.BigEndian.Uint64(b[56:])
	s.keys, s.mark = binary.BigEndian.Uint64(b[64:]), binary.BigEndian.Uint32(b[80:])
	blocks := binary.BigEndian.Uint64(b[72:])
	switch {
	case string(b[:8]) != magic || binary.BigEndian.Uint32(b[8:]) != version:
		err = errors.New("it is not a segment of this version")
	case binary.BigEndian.Uint32(b[88:]) != crc32.Checksum(b[:88], castagnoli):
		err = errors.New("its header is damaged")
	case !bytes.Equal(b[16:48], identity[:]):
		err = errors.New("it is of another log")
	case s.step == 0 || s.from >= s.to || s.keys == 0 || s.keys > s.to-s.from || s.keys > math.MaxInt64/itemSize/2:
		err = errors.New("its header makes no sense")
	case blocks != s.blocks() || s.sparseKeys() > maxSparse:
		err = errors.New("its header contradicts itself")
	}
	return s, binary.BigEndian.Uint32(b[84:]), err
}

// segment is an open segment.
type segment struct {
	span
	file   *os.File
	sparse []Key
}

// damage says that a segment is damaged.
type damage struct {
	segment *segment
	err     error
}

func (d *damage) Error() string { return fmt.Sprintf("%s is damaged: %v", d.segment.name(), d.err) }

// Unwrap returns the reason.
func (d *damage) Unwrap() error { return d.err }

// openSegments opens the segments that follow each other from the log's begin, and removes the
// files that are none, or not needed.
func (x *Index) openSegments() error {
	spans, err := x.list()
	if err != nil {
		return err
	}
	for _, one := range spans {
		if one.from == x.covered() {
			if s, err := x.openSegment(one); err == nil {
				x.segments = append(x.segments, s)
				continue
			}
		}
		_ = x.dir.Remove(one.name()) // if it stays, it is replaced, or met again
	}
	return nil
}

// covered is up to which entry segments have the keys.
func (x *Index) covered() uint64 {
	if len(x.segments) == 0 {
		return 0
	}
	return x.segments[len(x.segments)-1].to
}

// list returns what the names of segments say, by from; of several the longest first.
func (x *Index) list() (spans []span, err error) {
	d, err := x.dir.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list the index: %w", err)
	}
	defer func() { _ = d.Close() }() // nothing was written
	names, err := d.Readdirnames(maxNames)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list the index: %w", err)
	}
	for _, name := range names {
		var s span
		switch _, err := fmt.Sscanf(name, prefix+"%d-%d", &s.from, &s.to); {
		case err == nil && s.name() == name:
			spans = append(spans, s)
		case strings.HasPrefix(name, prefix):
			_ = x.dir.Remove(name) // a temporary of a run that was killed, or nothing of ours
		}
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	return spans, nil
}

// openSegment opens the segment that has the name of one.
func (x *Index) openSegment(one span) (*segment, error) {
	info, err := x.dir.Lstat(one.name())
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := x.dir.Open(one.name())
	if err != nil {
		return nil, err
	}
	s := &segment{file: f}
	if err := s.load(x, one, info.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// load reads header and sparse keys of a segment whose file has size bytes.
func (s *segment) load(x *Index, one span, size int64) error {
	head := make([]byte, headerSize)
	if _, err := s.file.ReadAt(head, 0); err != nil {
		return err
	}
	var sum uint32
	var err error
	if s.span, sum, err = parseHeader(head, x.identity); err != nil {
		return err
	}
	end := int64(s.blocks()+1) * blockSize
	if s.from != one.from || s.to != one.to || size != end+int64(s.sparseKeys())*int64(len(Key{})) {
		return errors.New("it has another size or name")
	}
	if mark, err := x.log.Mark(s.to - 1); err != nil || mark != s.mark {
		return errors.Join(errors.New("the log is another one"), err)
	}
	b := make([]byte, size-end)
	if _, err := s.file.ReadAt(b, end); err != nil {
		return err
	}
	if crc32.Checksum(b, castagnoli) != sum {
		return errors.New("its sparse keys are damaged")
	}
	s.sparse = make([]Key, s.sparseKeys())
	for i := range s.sparse {
		s.sparse[i] = Key(b[i*len(Key{}):])
	}
	return nil
}

// block is the checked contents of a block: its items.
type block []byte

func (b block) len() int { return len(b) / itemSize }

func (b block) item(i int) item { return parseItem(b[i*itemSize:]) }

// seal completes a block of up to blockKeys items, the no-th of its segment.
func seal(b block, no uint64) []byte {
	n := b.len()
	whole := append(b, make([]byte, blockSize-8-len(b))...)
	whole = binary.BigEndian.AppendUint32(whole, uint32(n))
	return binary.BigEndian.AppendUint32(whole, blockSum(whole, no))
}

// unseal returns the items of the no-th block.
func unseal(b []byte, no uint64) (block, error) {
	body := b[:blockSize-4]
	n := binary.BigEndian.Uint32(b[blockSize-8:])
	if binary.BigEndian.Uint32(b[blockSize-4:]) != blockSum(body, no) || n == 0 || n > blockKeys {
		return nil, fmt.Errorf("block %d has a wrong checksum", no)
	}
	return b[:n*itemSize], nil
}

func blockSum(b []byte, no uint64) uint32 {
	sum := crc32.Checksum(binary.BigEndian.AppendUint64(nil, no), castagnoli)
	return crc32.Update(sum, castagnoli, b)
}

// read reads len(b)/blockSize blocks from the no-th. An error is a damage.
func (s *segment) read(b []byte, no uint64) error {
	if _, err := s.file.ReadAt(b, int64(no+1)*blockSize); err != nil {
		return &damage{s, err}
	}
	return nil
}

// find returns the number of the entry with the key.
func (s *segment) find(c *cache, key Key) (n uint64, ok bool, err error) {
	after := sort.Search(len(s.sparse), func(i int) bool { return bytes.Compare(s.sparse[i][:], key[:]) > 0 })
	if after == 0 {
		return 0, false, nil
	}
	want := toItem(key, 0)
	low := uint64(after-1) * uint64(s.step)
	for high := min(low+uint64(s.step), s.blocks()); high-low > 1; {
		mid := (low + high) / 2
		above := false
		if err := c.with(s, mid, func(b block) { above = !b.item(0).sameKey(want) && b.item(0).compare(want) > 0 }); err != nil {
			return 0, false, err
		}
		if above {
			high = mid
		} else {
			low = mid
		}
	}
	err = c.with(s, low, func(b block) {
		at := sort.Search(b.len(), func(i int) bool { return b.item(i).compare(want) >= 0 })
		if ok = at < b.len() && b.item(at).sameKey(want); ok {
			n = b.item(at).entry
		}
	})
	return n, ok, err
}
