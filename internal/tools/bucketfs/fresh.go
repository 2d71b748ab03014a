package bucketfs

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
)

// fresh knows names that need not be looked for before they are made: those of a directory that this process has made, the first
// time. What has taken a name of such a directory since then is another process, beside which nobody is safe in a bucket.
type fresh struct {
	dirs *table[string, struct{}] // keys of directories that were made

	mu   sync.Mutex
	seed maphash.Seed
	bits []uint64 // a Bloom filter of names that were asked for
}

// freshBits is the size of the filter, in bits: 8 MiB. Of twenty million names one of five is looked for without need, of
// more still more.
const freshBits = 1 << 26

// freshHashes is how many bits stand for a name.
const freshHashes = 3

// take reports whether a name of a directory is certain not to be there. It is so once.
func (f *fresh) take(dir, name string) bool {
	if _, made := f.dirs.get(dir); !made {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bits == nil {
		f.bits, f.seed = make([]uint64, freshBits/64), maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(f.seed)
	_, _ = h.WriteString(dir + name) // a hash takes all
	first := false
	for i := range uint64(freshHashes) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, i))
		at := h.Sum64() % freshBits
		if bit := uint64(1) << (at % 64); f.bits[at/64]&bit == 0 {
			f.bits[at/64] |= bit
			first = true
		}
	}
	return first
}
