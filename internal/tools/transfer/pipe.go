package transfer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/vfs"
)

// zeroBlock is the unit in which zeros are found and not written, if the source cannot tell
// where its holes are.
const zeroBlock = 4096

// zeros is what a hole reads as. It is never written to.
var zeros [zeroBlock]byte

// pump copies the contents. It returns the source's attributes after the last read, if that
// read brought them.
func (c *copier) pump(ctx context.Context) (after vfs.Attr, err error) {
	if !sized(ctx, c.src, c.in, &c.before) {
		return c.unsized(ctx)
	}
	if c.before.Size == 0 {
		return after, nil
	}
	p := pipe{
		in: c.in, out: c.out, o: c.o, sum: c.sum,
		pieces: pieces{size: c.before.Size, chunk: c.o.paced(), cuts: c.o.cutsOf(c.in)},
		moved:  func(n int) { c.moved.Add(int64(n)); c.o.moved(int64(n)) },
		from:   c.from, end: c.from,
	}
	if c.whole != nil { // it is given all bytes, and takes what it lacks
		count := p.moved
		p.moved = func(n int) { count(c.movedWhole(n)) }
		p.from, p.end = 0, 0
	}
	if p.sum == nil {
		p.pieces.off = p.from
	}
	if c.dst.Part != nil && c.whole == nil {
		p.milestones = &milestones{note: c.note, every: c.dst.Part.Every, last: c.from, begun: make(map[uint64]struct{})}
	}
	if c.whole == nil {
		p.pieces.seek(c.in, &c.before)
		p.zeros = p.pieces.holes == nil && sparse(&c.before)
	}
	if c.before.Size <= p.pieces.chunk && c.syncer == nil {
		p.how = vfs.FileSync
	}
	p.behind, _ = vfs.As[bufpool.Writer](c.out)
	after, err = p.run(ctx)
	c.unstable = p.unstable
	if err == nil && p.end < c.before.Size {
		// The file ends in a hole.
		if _, err := c.out.Truncate(ctx, c.before.Size); err != nil {
			return after, fmt.Errorf("set the size: %w", err)
		}
	}
	return after, err
}

// sparse reports whether a file has less storage than bytes.
func sparse(a *vfs.Attr) bool { return a.Has(vfs.MaskUsed) && a.Used < a.Size }

// pipe moves the bytes of a file from in to out. Without an out it only hashes them.
type pipe struct {
	in, out    vfs.File
	o          *Options
	sum        *digest // nil: none
	how        vfs.Stability
	zeros      bool           // do not write blocks of zeros
	behind     bufpool.Writer // nil if out is none
	moved      func(n int)
	workers    *workers    // nil if there is but one piece
	from       uint64      // what is before is written
	milestones *milestones // nil: there are none

	settling chan struct{} // full while a piece is settled, and slots are taken for it

	mu       sync.Mutex
	pieces   pieces
	last     chan struct{} // closed when the piece taken last has been hashed
	end      uint64        // of what was written
	unstable bool          // a COMMIT is needed
	err      error
}

// run moves everything. For a file of one piece it returns the attributes that came with the
// read. For others the caller has to ask.
func (p *pipe) run(ctx context.Context) (after vfs.Attr, err error) {
	p.settling = make(chan struct{}, 1)
	p.last = make(chan struct{})
	close(p.last)
	n := p.pieces.size / p.pieces.chunk
	if n == 0 || p.pieces.size == p.pieces.chunk {
		p.work(ctx, &after)
		return after, p.err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.workers = &workers{o: p.o, chunks: n + 1, work: func() {
		if !p.work(ctx, nil) {
			cancel()
		}
	}}
	p.workers.run()
	return after, p.err
}

// work moves pieces until there are none. It is false after an error.
func (p *pipe) work(ctx context.Context, post *vfs.Attr) bool {
	for {
		more, err := p.step(ctx, post)
		if err != nil {
			p.fail(err)
			return false
		}
		if !more {
			return true
		}
	}
}

// step moves one piece, if there is one.
func (p *pipe) step(ctx context.Context, post *vfs.Attr) (more bool, err error) {
	at, turn, done, err := p.settle(ctx)
	if err != nil || at.n == 0 {
		return false, err
	}
	defer p.o.Budget.release(at.held())
	if err := p.move(ctx, at, turn, done, post); err != nil {
		return false, err
	}
	p.workers.moved(p.in)
	return true, p.mark(ctx, at)
}

// settle takes the next piece, and slots for it.
func (p *pipe) settle(ctx context.Context) (at piece, turn, done chan struct{}, err error) {
	select {
	case p.settling <- struct{}{}:
	case <-ctx.Done():
		return at, nil, nil, ctx.Err()
	}
	defer func() { <-p.settling }()
	if at, turn, done, err = p.take(ctx); err == nil && at.n > 0 {
		err = p.o.Budget.acquire(ctx, at.held())
	}
	return at, turn, done, err
}

// take returns the next piece and two channels: the first is closed when the piece may be
// hashed, the second is to be closed when it has been.
func (p *pipe) take(ctx context.Context) (at piece, turn, done chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, err = p.pieces.next(ctx, p.sum != nil)
	if err != nil {
		return at, nil, nil, p.read(err)
	}
	if at.n > 0 {
		p.milestones.begin(at)
	}
	if at.n == 0 || p.sum == nil {
		return at, nil, nil, nil
	}
	turn, done = p.last, make(chan struct{})
	p.last = done
	return at, turn, done, nil
}

// fail keeps the first error. Later ones come from the cancellation that it causes.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// move reads, hashes and writes one piece.
func (p *pipe) move(ctx context.Context, at piece, turn, done chan struct{}, post *vfs.Attr) error {
	if at.hole {
		return p.hash(ctx, turn, done, func() { p.sum.hole(at.n) })
	}
	buf := p.o.Pool.Get(int(at.n))
	defer buf.Release()
	n, err := p.o.read(ctx, p.in, buf.B, at.off, post)
	if err != nil {
		return p.read(fmt.Errorf("read at %d: %w", at.off, err))
	}
	if n < len(buf.B) {
		return fmt.Errorf("read at %d: %w", at.off+uint64(n), io.ErrUnexpectedEOF)
	}
	if p.sum != nil {
		if err := p.hash(ctx, turn, done, func() { p.sum.write(buf.B) }); err != nil {
			return err
		}
	}
	switch {
	case p.out == nil, at.off+at.n <= p.from:
		return nil
	case p.zeros:
		return p.writeData(ctx, buf.B, at.off)
	case p.behind != nil && p.how == vfs.Unstable:
		return p.wrote(at.off, at.n, true, p.behind.WriteBuffer(ctx, buf, at.off))
	}
	return p.write(ctx, buf.B, at.off)
}

// read marks err, of in, as the source's. Without an out, in is the copy.
func (p *pipe) read(err error) error {
	if p.out == nil {
		return err
	}
	return &sourceError{err: err}
}

// hash runs f when the pieces before have been hashed.
func (p *pipe) hash(ctx context.Context, turn, done chan struct{}, f func()) error {
	select {
	case <-turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer close(done)
	f()
	return nil
}

// writeData writes the runs of blocks in b that are not all zeros.
func (p *pipe) writeData(ctx context.Context, b []byte, off uint64) error {
	start := -1 // of the run
	for at := 0; at <= len(b); at += zeroBlock {
		block := b[at:min(at+zeroBlock, len(b))]
		if data := len(block) > 0 && !bytes.Equal(block, zeros[:len(block)]); data {
			if start < 0 {
				start = at
			}
			continue
		}
		if start >= 0 {
			if err := p.write(ctx, b[start:at], off+uint64(start)); err != nil {
				return err
			}
			start = -1
		}
		p.moved(len(block))
	}
	if start >= 0 {
		return p.write(ctx, b[start:], off+uint64(start))
	}
	return nil
}

// write writes all of b.
func (p *pipe) write(ctx context.Context, b []byte, off uint64) error {
	unstable, err := writeFull(ctx, p.out, b, off, p.how)
	return p.wrote(off, uint64(len(b)), unstable, err)
}

// wrote notes the end of a write of n bytes.
func (p *pipe) wrote(off, n uint64, unstable bool, err error) error {
	if err != nil {
		return fmt.Errorf("write at %d: %w", off, err)
	}
	p.moved(int(n))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = max(p.end, off+n)
	p.unstable = p.unstable || unstable
	return nil
}
