package replycache

import (
	"encoding/binary"
	"math/bits"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// hashKeyBytes is the size of a hashKey where it is saved.
const hashKeyBytes = 8 * 8

// hashKey is the key of a hash that a client without it cannot predict. The hash
// multiplies words into 128 bits and folds the halves, as wyhash does, in four lanes: 1
// MiB takes some 30 us. hash/maphash takes three times that, and its seed cannot be
// saved.
type hashKey [8]uint64

func (k *hashKey) decode(p []byte) {
	for i := range k {
		k[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
}

func (k *hashKey) append(b []byte) []byte {
	for _, w := range k {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func word(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }

// sum hashes p. h is the hash of the bytes before p.
func (k *hashKey) sum(h uint64, p []byte) uint64 {
	n := uint64(len(p))
	if len(p) >= 64 {
		h0, h1, h2, h3 := h, h, h, h
		for ; len(p) >= 64; p = p[64:] {
			q := p[:64]
			h0 = fold(word(q)^k[0], word(q[8:])^h0)
			h1 = fold(word(q[16:])^k[1], word(q[24:])^h1)
			h2 = fold(word(q[32:])^k[2], word(q[40:])^h2)
			h3 = fold(word(q[48:])^k[3], word(q[56:])^h3)
		}
		h = fold(h0^k[4], h1) ^ fold(h2^k[5], h3)
	}
	for ; len(p) >= 16; p = p[16:] {
		h = fold(word(p)^k[4], word(p[8:])^h)
	}
	var last [16]byte
	copy(last[:], p)
	h = fold(word(last[:])^k[5], word(last[8:])^h)
	return fold(h^k[6], n^k[7])
}

// call hashes a call's credential and arguments.
func (k *hashKey) call(cred oncrpc.Auth, args []byte) uint64 {
	body := cred.Body
	if cred.Flavor == oncrpc.AuthSysFlavor && len(body) >= 4 {
		body = body[4:] // the stamp says nothing about the caller
	}
	return k.sum(k.sum(k[0]^uint64(cred.Flavor), body), args)
}
