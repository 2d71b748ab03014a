package bucketfs

import (
	"context"
	"sync"
)

// budget is memory that several share.
type budget struct {
	mu    sync.Mutex
	room  int64
	queue []*waiting // in turn, so that a large file is not passed over for ever
}

type waiting struct {
	n  int64
	ok chan struct{}
}

// take waits until there is room for n bytes, which are at most all of it.
func (b *budget) take(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.queue) == 0 && b.room >= n {
		b.room -= n
		b.mu.Unlock()
		return nil
	}
	w := &waiting{n, make(chan struct{})}
	b.queue = append(b.queue, w)
	b.mu.Unlock()
	select {
	case <-w.ok:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.queue {
		if other == w {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			b.grant()
			return ctx.Err()
		}
	}
	b.room += n // it was granted meanwhile
	b.grant()
	return ctx.Err()
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room += n
	b.grant()
}

// grant gives room to those whose turn it is. b.mu is held.
func (b *budget) grant() {
	for len(b.queue) > 0 && b.queue[0].n <= b.room {
		b.room -= b.queue[0].n
		close(b.queue[0].ok)
		b.queue = b.queue[1:]
	}
}
