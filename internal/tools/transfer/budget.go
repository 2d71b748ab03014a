package transfer

import "context"

// Budget bounds the chunks that all transfers which share it hold at once, and
// with them their memory. At the bound transfers wait.
//
// A slot is taken before it is settled which piece of a file it is for, so that
// the piece whose turn is next always has one: files that share a Budget cannot
// lock each other out.
type Budget struct{ slots chan struct{} }

// NewBudget makes a budget of n chunks. A comparison holds two for one.
func NewBudget(n int) *Budget { return &Budget{slots: make(chan struct{}, max(n, 1))} }

// acquire takes a slot; a nil Budget has enough of them.
func (b *Budget) acquire(ctx context.Context) error {
	if b == nil {
		return nil
	}
	select {
	case b.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Budget) release() {
	if b != nil {
		<-b.slots
	}
}

// ample reports whether a file may have more chunks in flight than at first: a quarter of
// the slots is left to other files.
func (b *Budget) ample() bool { return b == nil || 4*len(b.slots) < 3*cap(b.slots) }
