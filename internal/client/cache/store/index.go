package store

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

const (
	indexMagic   = "nfsbox-i"
	indexVersion = 1
	indexHead    = 8 + 4 + 4 // magic, version, count
	indexRecord  = 8 + 4 + 4 // id, blocks, flags

	pinned = 1 // flag of a record
)

// record is an entry in the index. It has 24 bytes, and about as much again in the map: a million
// entries take less than 64 MiB.
type record struct {
	id         uint64
	blocks     uint32
	flags      uint32
	prev, next int32 // in the order of use; -1: none
}

// index is what is in a store, in the order of use. Its owner's mutex guards it.
type index struct {
	at             map[uint64]int32 // by id, the place in records
	records        []record
	free           int32 // of unused records, chained by next; -1: none
	oldest, newest int32 // -1: none
	blocks         int64 // of all records
	pinned         int64 // blocks of those that are pinned
}

func newIndex(n int) *index {
	return &index{at: make(map[uint64]int32, n), records: make([]record, 0, n), free: -1, oldest: -1, newest: -1}
}

func (x *index) get(id uint64) *record {
	if i, ok := x.at[id]; ok {
		return &x.records[i]
	}
	return nil
}

// use makes id the newest, and adds it if it is not there.
func (x *index) use(id uint64) *record {
	i, ok := x.at[id]
	switch {
	case ok && i == x.newest:
		return &x.records[i]
	case ok:
		x.unlink(i)
	case x.free >= 0:
		i = x.free
		x.free = x.records[i].next
		x.records[i] = record{id: id}
	default:
		i = int32(len(x.records))
		x.records = append(x.records, record{id: id})
	}
	x.at[id] = i
	r := &x.records[i]
	r.prev, r.next = x.newest, -1
	if x.newest >= 0 {
		x.records[x.newest].next = i
	} else {
		x.oldest = i
	}
	x.newest = i
	return r
}

func (x *index) unlink(i int32) {
	r := &x.records[i]
	if r.prev >= 0 {
		x.records[r.prev].next = r.next
	} else {
		x.oldest = r.next
	}
	if r.next >= 0 {
		x.records[r.next].prev = r.prev
	} else {
		x.newest = r.prev
	}
}

// resize sets what r takes.
func (x *index) resize(r *record, blocks uint32) {
	more := int64(blocks) - int64(r.blocks)
	x.blocks += more
	if r.flags&pinned != 0 {
		x.pinned += more
	}
	r.blocks = blocks
}

// pin sets whether r is pinned.
func (x *index) pin(r *record, pin bool) {
	switch is := r.flags&pinned != 0; {
	case pin && !is:
		r.flags |= pinned
		x.pinned += int64(r.blocks)
	case !pin && is:
		r.flags &^= pinned
		x.pinned -= int64(r.blocks)
	}
}

// remove takes id out, and returns what it took.
func (x *index) remove(id uint64) uint32 {
	i, ok := x.at[id]
	if !ok {
		return 0
	}
	r := &x.records[i]
	blocks := r.blocks
	x.pin(r, false)
	x.blocks -= int64(blocks)
	x.unlink(i)
	delete(x.at, id)
	x.records[i] = record{next: x.free}
	x.free = i
	return blocks
}

// append writes the index, oldest first.
func (x *index) append(b []byte) []byte {
	b = slices.Grow(b, indexHead+len(x.at)*indexRecord+4)
	b = append(b, indexMagic...)
	b = binary.BigEndian.AppendUint32(b, indexVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(len(x.at)))
	for i := x.oldest; i >= 0; i = x.records[i].next {
		r := &x.records[i]
		b = binary.BigEndian.AppendUint64(b, r.id)
		b = binary.BigEndian.AppendUint32(b, r.blocks)
		b = binary.BigEndian.AppendUint32(b, r.flags)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// parseIndex reads what append has written.
func parseIndex(b []byte) (*index, error) {
	if len(b) < indexHead+4 || string(b[:8]) != indexMagic || binary.BigEndian.Uint32(b[8:]) != indexVersion {
		return nil, errDamaged
	}
	end := len(b) - 4
	n := uint64(binary.BigEndian.Uint32(b[12:]))
	if n > maxEntries || uint64(end-indexHead) != n*indexRecord ||
		binary.BigEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return nil, errDamaged
	}
	x := newIndex(int(n))
	for b := b[indexHead:end]; len(b) > 0; b = b[indexRecord:] {
		id := binary.BigEndian.Uint64(b)
		if x.get(id) != nil {
			return nil, errDamaged
		}
		r := x.use(id)
		x.resize(r, binary.BigEndian.Uint32(b[8:]))
		flags := binary.BigEndian.Uint32(b[12:])
		if flags&^pinned != 0 {
			return nil, errDamaged
		}
		x.pin(r, flags != 0)
	}
	return x, nil
}
