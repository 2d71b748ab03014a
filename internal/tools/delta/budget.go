package delta

import "sync"

const (
	// heldBytes bounds the entries of right directories that are held at once, of all
	// directories together. At the bound, directories are joined in smaller ranges.
	heldBytes = 64 << 20
	// minHeld is what each directory may hold in any case, about 50 entries. Package walk
	// bounds how many are joined at once. They are those that are being listed, and those whose
	// listing is suspended: one a level in the worst case.
	minHeld = 8 << 10
)

// budget is what is left of the memory for entries. Its methods may be called concurrently.
type budget struct {
	mu   sync.Mutex
	left int // bytes; below zero if directories hold their minHeld beyond it
}

// take reports whether a directory that holds some bytes may hold n more, and takes them: up to
// two thirds of what is left without it.
func (b *budget) take(holds, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if holds+n > max(minHeld, (b.left+holds)/3*2) {
		return false
	}
	b.left -= n
	return true
}

// give gives bytes back; fewer than none takes them without a question.
func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// room is how much a directory that holds nothing may take.
func (b *budget) room() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(minHeld, b.left/3*2)
}
