package readahead

import (
	"math"
	"slices"
	"sync"
	"time"
)

// span is a range of bytes, [from, to).
type span struct{ from, to uint64 }

// node is an object with open files, whichever callers opened them.
type node struct {
	opens int // guarded by shared.mu

	mu       sync.Mutex
	files    []*file
	chunks   int       // in all files
	changing []span    // by calls that are under way below
	changes  uint64    // counts such calls that have ended
	cond     sync.Cond // a READ ahead has ended, or a chunk is gone
}

// beginChange is called before a call that writes or cuts [from, to) below. It drops what was read
// ahead there, and until endChange nothing there is read ahead. So what a READ brought of the
// bytes from before the change is never handed out after it.
func (n *node) beginChange(from, to uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changing = append(n.changing, span{from, to})
	n.invalidate(from, to)
}

// endChange is called when the call has returned.
func (n *node) endChange(from, to uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.changing, span{from, to})
	n.changing = slices.Delete(n.changing, i, i+1)
	n.changes++
	if to == math.MaxUint64 {
		n.forgetEnd()
	}
}

// unchanging is how many of the size bytes at off come before the first that a call under way may
// change. n.mu is held.
func (n *node) unchanging(off, size uint64) uint64 {
	for _, c := range n.changing {
		if c.from < off+size && off < c.to {
			size = max(c.from, off) - off
		}
	}
	return size
}

// invalidate drops chunks with bytes in [from, to), and chunks that saw the end of the file before
// to. n.mu is held.
func (n *node) invalidate(from, to uint64) {
	if n.chunks == 0 {
		return
	}
	for _, f := range n.files {
		f.ahead.gen++
		for i := range f.ahead.streams {
			s := &f.ahead.streams[i]
			for j := len(s.chunks) - 1; j >= 0; j-- {
				c := s.chunks[j]
				if c.off < to && from < c.end() || c.eof && to > c.end() {
					f.drop(s, c)
				}
			}
		}
	}
}

// forgetEnd forgets where the file ends, when the size has been set. n.mu is held.
func (n *node) forgetEnd() {
	for _, f := range n.files {
		f.ahead.end, f.ahead.mtime = math.MaxUint64, time.Time{}
	}
}

// dropIdle drops what was read ahead for streams that nobody reads from.
func (n *node) dropIdle(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.files {
		for i := range f.ahead.streams {
			s := &f.ahead.streams[i]
			if len(s.chunks) > 0 && now.Sub(s.last) > maxIdle {
				f.retire(s)
			}
		}
	}
}

// abandon ends reading ahead in all files. It returns when no chunk is left.
func (n *node) abandon() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.files {
		f.stop()
	}
	for n.chunks > 0 {
		n.cond.Wait()
	}
}
