package readahead

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// ReadAt reads from what was read ahead, and below what was not. Attributes that came with
// what was read ahead are as old as that, and not handed out.
func (f *file) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	if f.isNear() || len(p) == 0 || off > math.MaxInt64 || f.access&vfs.ShareRead == 0 || !f.knowsUnit(ctx) {
		return f.inner.ReadAt(ctx, p, off, post)
	}
	if f.s.opt.File <= 0 {
		return f.direct(ctx, p, off, post)
	}
	// A read from memory makes no call that would notice that ctx has ended.
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s, curious, look := f.expect(ctx, off, len(p))
	waited := false
	if s != nil {
		n, eof, waited, err = f.take(ctx, s, p, off)
	}
	if n == len(p) || eof || err != nil {
		f.landed(s, n, waited)
		if post != nil {
			*post = vfs.Attr{}
		}
		return n, eof, err
	}
	came := post
	if came == nil && curious {
		came = f.s.attr()
		defer f.s.attrs.Put(came)
	}
	var k int
	if look && n == 0 {
		k, eof, err = f.look(ctx, p, off, came)
	} else {
		k, eof, err = f.direct(ctx, p[n:], off+uint64(n), came)
	}
	if err == nil {
		f.landedBelow(s, n, came, off+uint64(n), k, eof)
	} else {
		f.landed(s, 0, true)
	}
	return n + k, eof, err
}

// isNear reports whether the file is near: then there is nothing to gain by reading ahead, by
// dividing reads, or by looking what they take. What was read ahead before it became near is given
// up: it is older than what the reader gets from now on.
func (f *file) isNear() bool {
	if f.near == nil || !f.near.Near() {
		return false
	}
	if f.ahead.held.Load() > 0 {
		f.n.mu.Lock()
		defer f.n.mu.Unlock()
		f.dropAll()
	}
	return true
}

// unit is how many bytes a READ carries.
func (f *file) unit() int { return int(f.s.unit.Load()) }

// knowsUnit asks for the limits, if that has not been done. If they do not come, the next
// read asks again.
func (f *file) knowsUnit(ctx context.Context) bool {
	if f.unit() > 0 {
		return true
	}
	_, err := f.view.Info(ctx, f.h, vfs.InfoLimits)
	return err == nil
}

// take copies to p what has been read ahead of it, and waits for what is in flight. waited says
// that it had to.
func (f *file) take(ctx context.Context, s *stream, p []byte, off uint64) (n int, eof, waited bool, err error) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	for n < len(p) {
		at := off + uint64(n)
		c := s.covering(at)
		if c == nil {
			break
		}
		if c.flying {
			waited = true
			if err := f.awaitChunk(ctx, c); err != nil {
				return n, false, true, err
			}
			continue // it may have brought less, or nothing
		}
		if time.Since(c.came) > maxFresh {
			f.drop(s, c)
			break
		}
		var k int
		k, eof = f.copyFrom(s, c, p[n:], at)
		n += k
	}
	if n > 0 {
		f.s.count.hits.Add(1)
	}
	return n, eof, waited, nil
}

// covering returns the chunk that at is in, or nil.
func (s *stream) covering(at uint64) *chunk {
	for _, c := range s.chunks {
		if c.off <= at && at < c.end() {
			return c
		}
	}
	return nil
}

// copyFrom copies from c without the lock, which is held before and after. eof says that the file
// ends with these bytes. c may be gone afterwards.
func (f *file) copyFrom(s *stream, c *chunk, p []byte, at uint64) (k int, eof bool) {
	data := c.buf.B[at-c.off:]
	c.pins++
	f.n.mu.Unlock()
	k = f.s.copyOut(p, data)
	f.n.mu.Lock()
	c.used += k
	eof = c.eof && at+uint64(k) == c.end()
	if !c.gone && c.used >= c.size {
		f.drop(s, c)
	}
	f.unpin(c)
	return k, eof
}

// copyOut is copy. It takes the time of large copies.
func (s *shared) copyOut(p, data []byte) int {
	if min(len(p), len(data)) < copyLook {
		return copy(p, data)
	}
	start := time.Now()
	k := copy(p, data)
	s.copied.took(k, time.Since(start))
	return k
}

// landed ends a read of stream s that got n bytes of what was read ahead.
func (f *file) landed(s *stream, n int, waited bool) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	f.moved(s, n, waited)
}

// landedBelow is landed for a read whose last k bytes, at off, came from below. post, if not nil,
// are the attributes that came with them.
func (f *file) landedBelow(s *stream, n int, post *vfs.Attr, off uint64, k int, eof bool) {
	f.s.count.misses.Add(1)
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	if post != nil {
		f.learn(post, off, k, eof)
	}
	f.moved(s, n+k, true)
}

// moved ends the read, and tells the stream's climb how much has come. f.n.mu is held.
func (f *file) moved(s *stream, n int, waited bool) {
	if s == nil {
		return
	}
	s.busy--
	s.ended = time.Now()
	if s.narrow || !s.ahead || s.window.opening {
		s.window.restart()
		s.window.waited = s.window.waited || waited
		return
	}
	s.window.moved(n, f.unit(), f.mostAhead(), waited)
	if level, ok := s.window.found(); ok {
		f.s.found.Store(int32(level))
	}
}

// newWindow is the climb of a new stream. It begins at the level that an earlier stream has found.
func (s *shared) newWindow() climb {
	found := int(s.found.Load())
	return climb{level: max(firstAhead, found), opening: found == 0}
}

// mostAhead is how many READs ahead fit in the bound of a file.
func (f *file) mostAhead() int { return max(1, int(f.s.opt.File/int64(f.unit()))) }

// direct reads below into p. What is more than a READ carries is split.
func (f *file) direct(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	if len(p) <= f.unit() {
		return f.once(ctx, p, off, post)
	}
	r := split{f: f, p: p, off: off, post: post}
	return r.read(ctx)
}

// fill reads below until p is full or the file ends.
func (f *file) fill(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	for n < len(p) {
		k, eof, err := f.once(ctx, p[n:], off+uint64(n), post)
		if k < 0 || k > len(p)-n {
			return n, false, fmt.Errorf("read of %d bytes answered %d: %w", len(p)-n, k, vfs.ErrServerFault)
		}
		n += k
		if err != nil || eof {
			return n, eof, err
		}
		if k == 0 {
			return n, false, io.ErrNoProgress
		}
	}
	return n, false, nil
}
