package snapshot

import "slices"

// Pieces are as long as several MiB, and no two of them are equally long. If the collector had their memory, the kernel would have to clear
// as much of it as is read.
const (
	// spareLeast is the least memory that is used again, in bytes.
	spareLeast = 256 << 10
	// spareBytes bounds the memory that waits for another use. What was put in first is left to the collector.
	spareBytes = 2 * maxPiece
	// spareUnit is what memory is a multiple of, so that it suits others as well.
	spareUnit = 1 << 20
)

// spare is memory that waits for another use.
type spare struct {
	all  [][]byte
	size int64
}

// put takes memory over that nobody has any more.
func (s *spare) put(b []byte) {
	if cap(b) < spareLeast {
		return
	}
	s.all = append(s.all, b[:0])
	for s.size += int64(cap(b)); s.size > spareBytes; {
		s.drop(0)
	}
}

// take returns the memory that suits n bytes best, or nil.
func (s *spare) take(n int64) []byte {
	best := -1
	for i, b := range s.all {
		if int64(cap(b)) >= n && (best < 0 || cap(b) < cap(s.all[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return s.drop(best)
}

func (s *spare) drop(i int) []byte {
	b := s.all[i]
	s.size -= int64(cap(b))
	s.all = slices.Delete(s.all, i, i+1)
	return b
}

// reuse takes memory over that nobody has any more.
func (g *getter) reuse(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spare.put(b)
}

// room returns memory for n bytes, of length 0.
func (g *getter) room(n int64) []byte {
	if n < spareLeast {
		return make([]byte, 0, n)
	}
	g.mu.Lock()
	b := g.spare.take(n)
	g.mu.Unlock()
	if b == nil {
		b = make([]byte, 0, (n+spareUnit-1)/spareUnit*spareUnit)
	}
	return b
}
