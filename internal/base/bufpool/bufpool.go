// Package bufpool lends buffers for file data, and counts them, so that tests find a lost one.
//
// A buffer has one owner at a time, which calls Release once. After Share it has several
// owners, and each calls Release. A [Writer] becomes an owner of what it is given, so that
// bytes need not be copied on their way to a server. The pool counts the buffers in use: tests check
// [Pool.Outstanding] in their cleanup, and so find a buffer that was lost or released twice
// before it corrupts data.
//
// Buffers come in sizes of powers of two. Small requests get the smallest size. Requests above
// the largest are allocated as asked for and left to the garbage collector, but are counted,
// too.
package bufpool

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	minBits = 9  // 512 bytes: an RPC without bulk fits
	maxBits = 24 // 16 MiB: a piece of a snapshot fits, and 1 MiB of bulk with the head before it
)

// Pool lends buffers. The zero Pool is ready. All methods may be called concurrently. Idle
// buffers belong to the garbage collector (sync.Pool). The pool does not bound the buffers in
// use; its users do.
type Pool struct {
	classes [maxBits - minBits + 1]sync.Pool
	out     atomic.Int64
	bytes   atomic.Int64
}

// Buffer is a lent buffer. Its bytes are those of its last use.
type Buffer struct {
	// B is the buffer, of the length that was asked for. The owner may reslice
	// it and append to it.
	B     []byte
	full  []byte // as allocated
	class int    // of the pool; -1 if too large for one
	pool  *Pool
	users atomic.Int32
}

// classOf is the class of buffers of n bytes, which may be above the largest.
func classOf(n int) int { return max(bits.Len(uint(max(n, 1)-1)), minBits) - minBits }

// Size is the memory, in bytes, of the buffer that Get lends for n bytes.
func Size(n int) int {
	if class := classOf(n); class <= maxBits-minBits {
		return 1 << (class + minBits)
	}
	return n
}

// Get lends a buffer whose B has n bytes, and takes [Size] bytes of memory.
func (p *Pool) Get(n int) *Buffer {
	class := classOf(n)
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

// Share adds an owner to b and returns b. Owners may read the bytes at the same time. An owner
// changes the bytes, or B, only if the others have agreed to do nothing with b but release it,
// as the caller of a [Writer] does.
func (b *Buffer) Share() *Buffer {
	b.users.Add(1)
	return b
}

// Release ends the caller's ownership of b, whose bytes must not be used afterwards. A second
// Release panics, because two owners of one buffer would corrupt data. If there are several
// owners (Share), an owner that releases twice takes the release of another, and the last one's
// panics.
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

// Outstanding is the number of buffers in use now.
func (p *Pool) Outstanding() int { return int(p.out.Load()) }

// Bytes is the memory of the buffers in use now, in bytes.
func (p *Pool) Bytes() int64 { return p.bytes.Load() }
