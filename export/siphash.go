package export

import (
	"encoding/binary"
	"math/bits"
)

// Key is the secret under which handles are sealed. The caller makes it once, at
// random, and keeps it: handles sealed under another key are stale.
type Key [16]byte

// sum is SipHash-2-4 (Aumasson and Bernstein, 2012) of p: a checksum that takes tens
// of nanoseconds and cannot be computed without the key.
func (k *Key) sum(p []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(k[:8]), binary.LittleEndian.Uint64(k[8:])
	s := sipState{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	last := uint64(len(p)) << 56
	for len(p) >= 8 {
		s.word(binary.LittleEndian.Uint64(p))
		p = p[8:]
	}
	for i, c := range p {
		last |= uint64(c) << (8 * i)
	}
	s.word(last)
	s.v2 ^= 0xff
	for range 4 {
		s.round()
	}
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}

type sipState struct{ v0, v1, v2, v3 uint64 }

func (s *sipState) word(m uint64) {
	s.v3 ^= m
	s.round()
	s.round()
	s.v0 ^= m
}

func (s *sipState) round() {
	s.v0 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 13) ^ s.v0
	s.v0 = bits.RotateLeft64(s.v0, 32)
	s.v2 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 16) ^ s.v2
	s.v0 += s.v3
	s.v3 = bits.RotateLeft64(s.v3, 21) ^ s.v0
	s.v2 += s.v1
	s.v1 = bits.RotateLeft64(s.v1, 17) ^ s.v2
	s.v2 = bits.RotateLeft64(s.v2, 32)
}
