package oncrpc

import (
	"io"
	"net"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// Releaser is the owner of bytes that were lent to a reply. Release is called
// exactly once, when the bytes have been written or dropped.
type Releaser interface{ Release() }

// batch is what one write carries: encoded messages in head, and bulk between them, which
// is written from where it is. It belongs to the goroutine that writes.
type batch struct {
	head []byte
	cuts []cut
	lent int64       // the length of all bulk
	segs net.Buffers // head and bulk in order: cut i is segs[2i+1]
	left net.Buffers // the part of segs that is not written yet
}

// cut is bulk that belongs at head[at].
type cut struct {
	at    int
	bulk  []byte
	owner Releaser // nil: a caller that waits
}

// bulk appends p, without copying it, behind what is encoded so far.
func (b *batch) bulk(p []byte, owner Releaser) {
	b.cuts = append(b.cuts, cut{at: len(b.head), bulk: p, owner: owner})
	b.lent += int64(len(p))
}

// bytes is the batch's length so far.
func (b *batch) bytes() int64 { return int64(len(b.head)) + b.lent }

// rewind takes back a message: head and cuts are what there was before it. Its encoder,
// which has failed, may have put anything in head's place.
func (b *batch) rewind(head []byte, cuts int) {
	b.head = head
	for i := range b.cuts[cuts:] {
		b.lent -= int64(len(b.cuts[cuts+i].bulk))
	}
	clear(b.cuts[cuts:])
	b.cuts = b.cuts[:cuts]
}

// seal lays the batch out for writing.
func (b *batch) seal() {
	b.segs = b.segs[:0]
	at := 0
	for i := range b.cuts {
		c := &b.cuts[i]
		b.segs = append(b.segs, b.head[at:c.at], c.bulk)
		at = c.at
	}
	b.segs = append(b.segs, b.head[at:])
	b.left = b.segs
	if b.bytes() == 0 {
		b.left = nil
	}
}

// coalesce copies the batch into one buffer of pool, for a connection that takes
// no vectored writes. The caller releases the buffer, if it is not nil, when the batch was written.
func (b *batch) coalesce(pool *bufpool.Pool) *bufpool.Buffer {
	if len(b.cuts) == 0 {
		return nil
	}
	n := 0
	for _, s := range b.left {
		n += len(s)
	}
	buf := pool.Get(n)
	at := 0
	for _, s := range b.left {
		at += copy(buf.B[at:], s)
	}
	b.segs = append(b.segs[:0], buf.B)
	b.left = b.segs
	return buf
}

// write writes what is left, in one system call unless the kernel takes less, and returns
// how many bytes it wrote. A single buffer goes through one, which is nc or a quicker way
// to it.
func (b *batch) write(nc net.Conn, one io.Writer) (int64, error) {
	if len(b.left) == 1 {
		n, err := one.Write(b.left[0])
		b.left[0] = b.left[0][n:]
		if err == nil {
			b.left = nil
		}
		return int64(n), err
	}
	return b.left.WriteTo(nc)
}

// written is how many of segs have been written whole.
func (b *batch) written() int { return len(b.segs) - len(b.left) }

// reset releases the bulk and empties the batch.
func (b *batch) reset() {
	for i := range b.cuts {
		if o := b.cuts[i].owner; o != nil {
			o.Release()
		}
	}
	clear(b.cuts)
	clear(b.segs)
	b.cuts, b.segs, b.left = b.cuts[:0], b.segs[:0], nil
	b.head, b.lent = b.head[:0], 0
	if cap(b.head) > keepBytes {
		b.head = nil
	}
}
