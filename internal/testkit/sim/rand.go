package sim

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// Rand is a source of bytes that are the same for the same seed: an io.Reader in place of
// crypto/rand.Reader, for verifiers, keys, xids and UUIDs. It may be read concurrently, but
// then the scheduler decides which reader gets which bytes; give each user a Rand of its own
// with [Rand.Fork].
type Rand struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

// NewRand returns the source for seed.
func NewRand(seed uint64) *Rand { return newRand(seed, 0) }

// newRand returns one of many independent sources for seed, by number.
func newRand(seed, number uint64) *Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], number)
	return &Rand{src: rand.NewChaCha8(key)}
}

// Read fills p. It never fails.
func (r *Rand) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

// Uint64 is 64 random bits. It makes Rand a rand.Source.
func (r *Rand) Uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Uint64()
}

// IntN is a number in [0, n); n must be positive.
func (r *Rand) IntN(n int) int { return rand.New(r).IntN(n) }

// Fork returns a source whose bytes depend on r's seed and on how much was drawn from r before,
// and not on later uses of r.
func (r *Rand) Fork() *Rand { return newRand(r.Uint64(), r.Uint64()) }

// Fill fills p, for constructors that take a function.
func (r *Rand) Fill(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.src.Read(p) // ChaCha8 never fails
}
