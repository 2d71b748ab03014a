package readahead

import (
	"context"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/vfs"
)

// chunk is what one READ ahead has brought, or will bring. Chunks are used again, so that
// reading ahead allocates nothing. A goroutine that has not pinned a chunk must not touch
// it once it is gone.
type chunk struct {
	run      func()        // readAhead, of this chunk
	answered chan struct{} // holds a token once the READ has been answered

	f      *file
	s      *stream
	off    uint64
	buf    *bufpool.Buffer // buf.B are the bytes, once they are there
	size   int             // how many they are
	flying bool
	gone   bool // of no use any more; the buffer goes with the last pin
	eof    bool
	level  int       // the window's when the READ was sent; -1: less was read ahead than it allows
	sure   bool      // no change was under way then: an end that the READ meets is the file's
	gen    uint64    // ahead.gen then
	came   time.Time // when it was answered
	post   vfs.Attr  // that came with it
	pins   int       // readers that copy from it, or wait for it
	used   int       // bytes that were copied
}

func (c *chunk) end() uint64 { return c.off + uint64(c.size) }

func (s *shared) newChunk() *chunk {
	c, _ := s.chunks.Get().(*chunk)
	if c == nil {
		c = &chunk{answered: make(chan struct{}, 1)}
		c.run = c.readAhead
	}
	return c
}

// readAhead fills c. Its errors are dropped: a read that wants the bytes asks below, and gets an
// error of its own.
func (c *chunk) readAhead() {
	f := c.f
	n, a := f.n, &f.ahead
	start := time.Now()
	k, eof, err := f.fill(f.ctx, c.buf.B, c.off, &c.post)
	took := time.Since(start)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		f.learn(&c.post, c.off, k, eof)
		if !c.gone {
			c.s.window.opened(c.level, took, f.s.quickest(), f.mostAhead())
		}
	}
	a.reading--
	c.flying, c.came, c.eof = false, time.Now(), eof
	c.answered <- struct{}{}
	short := k < c.size
	c.size, c.buf.B = k, c.buf.B[:k]
	f.s.count.read.Add(uint64(k))
	switch {
	case c.gone: // while it was in flight
		f.s.count.wasted.Add(uint64(k))
		f.recycle(c)
	case err != nil || k == 0 || (short || eof) && (!c.sure || c.gen != a.gen):
		f.drop(c.s, c)
	}
	n.cond.Broadcast()
}

// awaitChunk waits until c has been answered, or ctx ends. n.mu is held before and
// after; c may be gone then.
func (f *file) awaitChunk(ctx context.Context, c *chunk) (err error) {
	c.pins++
	f.n.mu.Unlock()
	select {
	case <-c.answered:
		c.answered <- struct{}{} // for the next one that waits
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.n.mu.Lock()
	f.unpin(c)
	return err
}

func (f *file) unpin(c *chunk) {
	c.pins--
	if c.gone {
		f.recycle(c)
	}
}

// passed drops chunks that the stream, which is now at off, has left behind. n.mu is held.
func (f *file) passed(s *stream, off uint64) {
	slack := 2 * uint64(f.unit()) // readers in parallel may come out of order
	for len(s.chunks) > 0 && !s.chunks[0].flying && s.chunks[0].end()+slack < off {
		f.drop(s, s.chunks[0])
	}
}

// drop takes c out of its stream. n.mu is held.
func (f *file) drop(s *stream, c *chunk) {
	for i, q := range s.chunks {
		if q == c {
			s.chunks = append(s.chunks[:i], s.chunks[i+1:]...)
			break
		}
	}
	if c.gone {
		return
	}
	c.gone = true
	if c.flying {
		s.wasted += uint64(c.size)
		return // readAhead goes on
	}
	used := min(c.used, c.size)
	s.hits += uint64(used)
	s.wasted += uint64(c.size - used)
	f.s.count.wasted.Add(uint64(c.size - used))
	f.recycle(c)
}

// recycle gives back c, which is gone, and its buffer, unless it is pinned or in flight: then it
// is called again. n.mu is held.
func (f *file) recycle(c *chunk) {
	if c.pins > 0 || c.flying {
		return
	}
	room := cap(c.buf.B)
	f.ahead.held.Add(-int64(room))
	f.s.unreserve(room)
	f.n.chunks--
	f.n.cond.Broadcast()
	c.buf.Release()
	select {
	case <-c.answered:
	default:
	}
	*c = chunk{run: c.run, answered: c.answered}
	f.s.chunks.Put(c)
}

// learn compares what a reply says about the file with what was known. If the file has
// changed, and no call through this FS has changed it, all that was read ahead is dropped.
// n.mu is held.
func (f *file) learn(post *vfs.Attr, off uint64, k int, eof bool) {
	a := &f.ahead
	to := off + uint64(k)
	switch {
	case post.Has(vfs.MaskSize):
		a.end = post.Size
	case eof:
		a.end = to
	case to > a.end:
		a.end = math.MaxUint64
	}
	if !post.Has(vfs.MaskSize | vfs.MaskMtime) {
		return
	}
	same := post.Mtime.Equal(a.mtime) && post.Size == a.size
	ours := a.mtime.IsZero() || len(f.n.changing) > 0 || f.n.changes != a.changes
	if !same && !ours {
		f.dropAll()
	}
	a.mtime, a.size, a.changes = post.Mtime, post.Size, f.n.changes
}

// dropAll drops all that was read ahead. Each stream counts it as wasted. n.mu is held.
func (f *file) dropAll() {
	for i := range f.ahead.streams {
		s := &f.ahead.streams[i]
		if len(s.chunks) > 0 {
			f.retire(s)
			s.reads, s.run, s.next = 1, 0, s.pos
		}
	}
	f.ahead.gen++
}
