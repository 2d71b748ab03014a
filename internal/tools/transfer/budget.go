package transfer

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Budget bounds the chunks that all transfers which share it hold at once, and
// with them their memory. At the bound transfers wait, and none is passed over. What is
// longer than MaxChunk counts as several, at most as all there are.
//
// A file settles what it reads next and takes the slots for it before it settles what comes behind. So
// the piece whose turn is next always has them: files that share a Budget cannot
// lock each other out.
type Budget struct {
	slots *semaphore.Weighted
	size  int64
	taken atomic.Int64
}

// NewBudget makes a budget of n chunks. A comparison holds two for one.
func NewBudget(n int) *Budget {
	size := int64(max(n, 1))
	return &Budget{slots: semaphore.NewWeighted(size), size: size}
}

// acquire takes slots for n bytes; a nil Budget has enough of them. The caller releases as many.
func (b *Budget) acquire(ctx context.Context, n uint64) error {
	if b == nil {
		return nil
	}
	slots := b.of(n)
	if err := b.slots.Acquire(ctx, slots); err != nil {
		return err
	}
	b.taken.Add(slots)
	return nil
}

func (b *Budget) release(n uint64) {
	if b != nil {
		slots := b.of(n)
		b.taken.Add(-slots)
		b.slots.Release(slots)
	}
}

// of is how many slots n bytes take.
func (b *Budget) of(n uint64) int64 { return min(int64((max(n, 1)-1)/MaxChunk)+1, b.size) }

// ample reports whether a file may have more chunks in flight than at first: a quarter of
// the slots is left to other files.
func (b *Budget) ample() bool { return b == nil || 4*b.taken.Load() < 3*b.size }
