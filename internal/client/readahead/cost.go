package readahead

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// A look measures how long a READ takes (file.look). lookSize is the smallest read that is
	// used for one, and lookFirst the part of it that is asked for alone.
	lookSize  = 4 * lookFirst
	lookFirst = minTransfer

	// lookPause is how many times its own length passes after a look until the next, and how many
	// reads are judged meanwhile. So looks cost little. They are repeated because the delay of a
	// near server changes, as when its disk is asked and not its cache. A look that took more than
	// twice as long as expected was chance, or much has changed: then lookSoon takes the place of
	// lookPause. The next read after the very first look makes another one, as everything was
	// cold.
	lookPause = 64
	lookSoon  = 8

	// Chance and other calls only make READs slower. So a time that is shorter than expected
	// counts at once. A longer time counts at most for riseOf8 eighths of what was expected, and
	// riseLeast. With riseLeast, an expected time of nothing can grow.
	riseOf8   = 9
	riseLeast = time.Microsecond

	// Reading ahead of a stream begins if that makes it at least a third faster (startOf12
	// twelfths of the speed). It ends if that would make it less than a quarter faster (stayOf12).
	startOf12 = 16
	stayOf12  = 15

	// The reader copies what is read ahead once more, and another goroutine wakes for it.
	// Reading ahead begins if it saves three times what the copy takes (startCopies), and
	// goes on while it saves twice that (stayCopies).
	startCopies = 3
	stayCopies  = 2

	// copyLook is the smallest copy that is measured. What a copy costs counts as known after
	// copyFirst of them. Without reading ahead nothing is copied: a single copy that was
	// interrupted would be believed for good.
	copyLook  = 64 << 10
	copyFirst = 4

	// thinkShare, as a divisor, is the part that a new measurement has in what is known of how
	// long a reader thinks.
	thinkShare = 8
)

// readCost is how long a READ takes that is alone: a delay, and a time for each byte. All files of
// an FS are on one server and share one readCost. It does not change: a look makes a new one.
type readCost struct {
	delay   time.Duration
	perByte float64 // nanoseconds
	looked  time.Time
	look    time.Duration // what the look took
	judged  uint64        // reads, when it ended
	pause   int           // lookPause or lookSoon, or 0 after the first look
}

func (t *readCost) bytes(n int) time.Duration { return time.Duration(t.perByte * float64(n)) }

func (t *readCost) read(n int) time.Duration { return t.delay + t.bytes(n) }

// after returns the cost after a look, in which a READ of small bytes took first, and one of large
// bytes took second. t is the cost before, or nil. alone says that no other READs were in flight.
// If there were others, times that are longer than expected do not count.
func (t *readCost) after(small, large int, first, second time.Duration, alone bool) *readCost {
	next := &readCost{look: first + second}
	if t != nil {
		next.pause = lookPause
		if alone && (first > 2*t.read(small) || second > 2*t.read(large)) {
			next.pause = lookSoon
		}
		first = min(first, t.most(small, alone))
		second = min(second, t.most(large, alone))
	}
	var per float64
	if large > small {
		per = max(0, float64(second-first)/float64(large-small))
	}
	next.delay, next.perByte = max(0, first-time.Duration(per*float64(small))), per
	return next
}

// most is the longest time that a READ of n bytes is believed to have taken.
func (t *readCost) most(n int, alone bool) time.Duration {
	if !alone {
		return t.read(n)
	}
	return t.read(n)*riseOf8/8 + riseLeast
}

// due reports whether it is time for a look, when so many reads have been judged.
func (t *readCost) due(now time.Time, judged uint64) bool {
	return judged-t.judged >= uint64(t.pause) && now.Sub(t.looked) >= time.Duration(t.pause)*t.look
}

// copied is what copying costs, as far as it has been measured.
type copied struct {
	perMiB atomic.Int64 // nanoseconds; 0: not measured yet
	looks  atomic.Uint64
}

// took notes how long a copy of n bytes has taken. As with READs, chance only makes it slower.
func (c *copied) took(n int, d time.Duration) {
	per := int64(float64(max(d, 1)) / float64(n) * (1 << 20))
	if old := c.perMiB.Load(); old > 0 {
		per = min(per, old*riseOf8/8+int64(riseLeast))
	}
	c.perMiB.Store(per)
	c.looks.Add(1)
}

// bytes is what a copy of n bytes costs; nothing while that is not known.
func (c *copied) bytes(n int) time.Duration {
	if c.looks.Load() < copyFirst {
		return 0
	}
	return time.Duration(float64(c.perMiB.Load()) * float64(n) / (1 << 20))
}

// pays reports whether it pays to read ahead of a stream with reads of size bytes. One after
// another, each read takes the reader's pause, the delay, and the time of its bytes. With reading
// ahead several READs are in flight: the delay is gone, and the time of the bytes passes during
// the pause.
//
// So reading ahead does not pay for whole READs from a near server without a pause between. It
// pays for small reads, for a far server, and for a reader that works on what it gets. What it
// saves must be worth the copy. While no cost is known, it counts as paying.
func (s *stream) pays(t *readCost, c *copied, size int) bool {
	if t == nil {
		return true
	}
	faster, copies := time.Duration(startOf12), time.Duration(startCopies)
	if s.ahead {
		faster, copies = stayOf12, stayCopies
	}
	alone, ahead := s.think+t.read(size), max(s.think, t.bytes(size))
	return 12*alone >= faster*ahead && alone-ahead >= copies*c.bytes(size)
}

// thought takes note of how long the reader has been thinking before a read of size bytes. More
// than such a read takes counts as so much, and so one long pause does not look like many short
// ones.
func (s *stream) thought(t *readCost, size int, now time.Time) {
	if t == nil || s.busy > 0 || s.ended.IsZero() {
		return
	}
	think := min(now.Sub(s.ended), t.read(size))
	s.think += (think - s.think) / thinkShare
}

// judge decides whether to read ahead of s, of which a read of size bytes has just begun. It also
// says whether that read is to be a look. A look needs that nothing else of the stream is under
// way, so reading ahead pauses first. n.mu is held.
func (f *file) judge(s *stream, size int, now time.Time) (look bool) {
	costs := &f.s.readCost
	t, judged := costs.Load(), f.s.judged.Add(1)
	switch {
	case s.busy > 1 || min(size, f.unit()) < lookSize:
		s.due = false
	case t == nil:
		s.due = !f.s.far()
	case !s.due && t.due(now, judged): // the call that changes looked is the one to look
		claimed := *t
		claimed.looked, claimed.judged = now, judged
		s.due = costs.CompareAndSwap(t, &claimed)
	}
	if !s.due {
		s.ahead = s.pays(t, &f.s.copied, size)
		return false
	}
	s.ahead, s.due = false, len(s.chunks) > 0
	return !s.due
}

// look reads like direct, but asks for the first bytes alone. It learns from the time that this
// takes, and from that of the rest of the first READ. If a server's replies are too short to tell,
// its READs are taken to be all delay: reading ahead of whole READs does not pay there.
func (f *file) look(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	s := f.s
	alone, began, start := s.reading.Load() == 0, s.begun.Load(), time.Now()
	n, eof, err = f.once(ctx, p[:lookFirst], off, post)
	if eof || err != nil {
		return n, eof, err
	}
	first := time.Since(start)
	var k int
	if n == lookFirst {
		k, eof, err = f.once(ctx, p[n:min(len(p), f.unit())], off+lookFirst, post)
		if err != nil {
			return n + k, eof, err
		}
	}
	if k > lookFirst || !eof {
		alone = alone && s.begun.Load() == began+2
		t := s.readCost.Load().after(lookFirst, k, first, time.Since(start)-first, alone)
		t.looked, t.judged = time.Now(), s.judged.Load()
		s.readCost.Store(t)
	}
	if n += k; eof || n != f.unit() || n == len(p) {
		return n, eof, nil
	}
	k, eof, err = f.direct(ctx, p[n:], off+uint64(n), post)
	return n + k, eof, err
}

// once is one READ, which is counted, and timed unless the server is near.
func (f *file) once(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (int, bool, error) {
	s := f.s
	s.begun.Add(1)
	s.reading.Add(1)
	defer s.reading.Add(-1)
	if s.least.Load() > 0 && !s.far() {
		return f.inner.ReadAt(ctx, p, off, post)
	}
	start := time.Now()
	n, eof, err := f.inner.ReadAt(ctx, p, off, post)
	if err == nil {
		s.took(time.Since(start))
	}
	return n, eof, err
}

// took notes what a READ has taken.
func (s *shared) took(d time.Duration) {
	for {
		least := s.least.Load()
		if least > 0 && least <= int64(d) || s.least.CompareAndSwap(least, max(int64(d), 1)) {
			return
		}
	}
}

// quickest is the shortest time that a READ has taken. Once a READ was quicker than farRead, no
// more are timed.
func (s *shared) quickest() time.Duration { return time.Duration(s.least.Load()) }

// far reports whether no READ has been answered sooner than after farRead.
func (s *shared) far() bool { return s.quickest() >= farRead }
