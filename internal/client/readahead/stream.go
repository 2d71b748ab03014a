package readahead

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// ahead is what an open file knows about its readers. The node's mutex guards
// it.
type ahead struct {
	streams []stream     // nil before the first read
	tick    uint64       // counts reads
	need    int          // reads in a row before anything is read ahead
	reading int          // READs ahead that are in flight
	gen     uint64       // counts what may have moved the end of the file
	held    atomic.Int64 // bytes of buffers; isNear reads it without the mutex

	end     uint64    // where the file ends below, as far as is known; else math.MaxUint64
	mtime   time.Time // of what has been read; zero if not known
	size    uint64    // likewise
	changes uint64    // node.changes then

	split climb // of READs for one ReadAt
}

// stream is a sequential reader, or what may become one.
type stream struct {
	pos   uint64 // where it is expected next
	reads int    // in a row; 0: the place is free
	run   uint64 // bytes of them
	used  uint64 // ahead.tick at the last one
	last  time.Time
	busy  int // reads under way

	next   uint64   // up to where has been read ahead
	chunks []*chunk // in order
	hits   uint64   // bytes of earlier chunks that were used
	wasted uint64   // and that were not
	window climb
	narrow bool // less is read ahead than window allows

	ahead bool          // it pays, as far as is known
	due   bool          // one of its reads is to look whether it does
	ended time.Time     // the last read
	think time.Duration // what usually passes until the next one
}

// match returns the stream that a read at off belongs to, or nil: one that is
// expected there, or has read ahead there.
func (a *ahead) match(off uint64) *stream {
	for i := range a.streams {
		s := &a.streams[i]
		switch {
		case s.reads == 0:
		case off == s.pos:
			return s
		case len(s.chunks) > 0 && off >= s.chunks[0].off && off <= s.next:
			return s
		}
	}
	return nil
}

// place returns the place for a new stream, or nil if all are in use just now. It takes one with
// nothing read ahead first, of these one without two reads in a row, and of equals the one that
// was read from the longest time ago.
func (a *ahead) place() *stream {
	var best *stream
	for i := range a.streams {
		s := &a.streams[i]
		if s.busy == 0 && (best == nil || s.lessThan(best)) {
			best = s
		}
	}
	return best
}

func (s *stream) lessThan(o *stream) bool {
	if a, b := len(s.chunks) > 0, len(o.chunks) > 0; a != b {
		return b
	}
	if a, b := s.reads > 1, o.reads > 1; a != b {
		return b
	}
	return s.used < o.used
}

// expect takes note of a read of size bytes at off, and reads ahead if that promises something. It
// returns the read's stream, or nil. curious says that the caller is to get the file's attributes
// with the read, and look that the read is to be a look (file.look).
func (f *file) expect(ctx context.Context, off uint64, size int) (s *stream, curious, look bool) {
	n, a := f.n, &f.ahead
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.streams == nil {
		a.streams = make([]stream, maxStreams)
		f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	a.tick++
	s = a.match(off)
	if s == nil {
		if s = a.place(); s == nil {
			return nil, a.held.Load() > 0, false
		}
		f.retire(s)
		*s = stream{chunks: s.chunks[:0], window: f.s.newWindow()}
	}
	// A caller with several large reads under way reads ahead by itself, and without
	// a copy.
	self := size >= f.unit() && s.busy > 0 && len(s.chunks) == 0
	now := time.Now()
	s.thought(f.s.readCost.Load(), size, now)
	s.pos = max(s.pos, off+uint64(size))
	s.reads++
	s.run += uint64(size)
	s.used = a.tick
	s.busy++
	if s.reads < a.need || self {
		return s, a.held.Load() > 0 || s.reads > 1, false
	}
	s.last = now
	f.passed(s, off)
	look = f.judge(s, size, now)
	if s.ahead && !f.stopped {
		f.topUp(s, size)
	}
	return s, true, look
}

// topUp reads ahead as far as the stream's window goes. The window is what pays, and the rest of
// the next read, if that is as large as this one. It begins with one READ, and stays narrower than
// what the stream has read so far. So, but for that first READ, less is wasted in the end than was
// of use. n.mu is held.
func (f *file) topUp(s *stream, read int) {
	n, a := f.n, &f.ahead
	unit := uint64(f.unit())
	wide := min(uint64(s.window.units()), uint64(f.mostAhead()))*unit + max(uint64(read), unit) - unit
	window := min(wide, max(s.run, 2*unit)-unit)
	s.narrow = window < wide
	s.next = max(s.next, s.pos)
	for {
		size := min(unit-s.next%unit, a.end-min(a.end, s.next))
		size = n.unchanging(s.next, size)
		if size == 0 || s.next+size > s.pos+window {
			return
		}
		room := bufpool.Size(int(size))
		if a.held.Load()+int64(room) > f.s.opt.File {
			return
		}
		ok, crowded := f.s.reserve(room)
		if crowded {
			go f.s.sweep() // which takes other objects' locks
		}
		if !ok {
			s.narrow = true
			return
		}
		c := f.s.newChunk()
		c.f, c.s, c.off, c.size = f, s, s.next, int(size)
		c.buf, c.flying, c.gen = f.s.opt.Pool.Get(int(size)), true, a.gen
		if c.level = s.window.level; s.narrow {
			c.level = -1
		}
		c.sure = len(n.changing) == 0
		s.chunks = append(s.chunks, c)
		s.next += size
		a.held.Add(int64(room))
		a.reading++
		n.chunks++
		go c.run()
	}
}

// retire ends a stream, and drops what was read ahead for it. How much of that was of use decides
// how soon the next stream of the file is read ahead of. n.mu is held.
func (f *file) retire(s *stream) {
	had := len(s.chunks) > 0 || s.hits+s.wasted > 0
	for len(s.chunks) > 0 {
		f.drop(s, s.chunks[0])
	}
	switch {
	case had && s.wasted > s.hits:
		f.ahead.need = min(2*f.ahead.need, lastRun)
	case had:
		f.ahead.need = max(f.ahead.need/2, firstRun)
	}
	s.hits, s.wasted = 0, 0
}
