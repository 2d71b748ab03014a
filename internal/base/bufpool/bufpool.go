// Package bufpool lends buffers and counts them.
//
// A buffer has one owner at a time, who gives it back with Release, once; or
// several, by Share, of whom each does. The pool knows how many are out: tests
// read [Pool.Outstanding] in their cleanup, and a buffer that was lost, or given
// back twice, is found there instead of in somebody's data.
//
// Buffers come in sizes of powers of two. Small requests share the smallest
// size, and requests above the largest are allocated as asked for and left to
// the garbage collector, but counted all the same.
package bufpool

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	minBits = 9  // 512 bytes: an RPC without bulk fits
	maxBits = 21 // 2 MiB: 1 MiB of bulk and the head before it fit
)

// Pool lends buffers. The zero Pool is ready. All methods may be called
// concurrently. Idle buffers belong to the garbage collector (sync.Pool); how
// many are out at once is for the users to bound, each where it knows why.
type Pool struct {
	classes [maxBits - minBits + 1]sync.Pool
	out     atomic.Int64
	bytes   atomic.Int64
}

// Buffer is one lent buffer. Its bytes hold whatever the user before left.
type Buffer struct {
	// B is the buffer, of the length that was asked for. The owner may reslice
	// it and append to it.
	B     []byte
	full  []byte // as it was allocated
	class int    // of the pool; -1 if too large for one
	pool  *Pool
	users atomic.Int32
}

// Get lends a buffer whose B has n bytes.
func (p *Pool) Get(n int) *Buffer {
	class := max(bits.Len(uint(max(n, 1)-1)), minBits) - minBits
	p.out.Add(1)
	if class >= len(p.classes) {
		b := &Buffer{full: make([]byte, n), class: -1, pool: p}
		return b.lend(n)
	}
	b, _ := p.classes[class].Get().(*Buffer)
	if b == nil {
		b = &Buffer{full: make([]byte, 1<<(class+minBits)), class: class, pool: p}
	}
	return b.lend(n)
}

func (b *Buffer) lend(n int) *Buffer {
	b.B = b.full[:n]
	b.users.Store(1)
	b.pool.bytes.Add(int64(len(b.full)))
	return b
}

// Share gives b one owner more, who may read it as long as he has not given it
// back, and returns it.
func (b *Buffer) Share() *Buffer {
	b.users.Add(1)
	return b
}

// Release gives b back. Its bytes must not be touched afterwards. A second
// Release panics: two owners of one buffer are corruption in the making. Of several
// owners (Share), one who releases it twice takes it from another, and that is found
// when the last of them gives it back.
func (b *Buffer) Release() {
	switch n := b.users.Add(-1); {
	case n > 0:
		return
	case n < 0:
		panic("bufpool: buffer released twice")
	}
	b.B = nil
	b.pool.out.Add(-1)
	b.pool.bytes.Add(-int64(len(b.full)))
	if b.class >= 0 {
		b.pool.classes[b.class].Put(b)
	}
}

// Outstanding is the number of buffers that are lent out now.
func (p *Pool) Outstanding() int { return int(p.out.Load()) }

// Bytes is the memory of the buffers that are lent out now.
func (p *Pool) Bytes() int64 { return p.bytes.Load() }
