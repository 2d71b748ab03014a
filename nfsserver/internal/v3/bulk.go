package v3

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/bufpool"
	"github.com/nfsbox/nfsbox/vfs"
)

// bulk is a lent buffer and what was taken for it from the budget. oncrpc
// releases it when its bytes have been written.
type bulk struct {
	buf *bufpool.Buffer
	srv *Service
	n   int64
}

// lend lends a buffer of n bytes to q, once the budget allows it.
func (q *request) lend(ctx context.Context, n int) ([]byte, error) {
	s := q.srv
	if err := s.budget.take(ctx, int64(n)); err != nil {
		return nil, err
	}
	b := s.bulks.Get().(*bulk)
	b.buf, b.srv, b.n = s.buffers.Get(n), s, int64(n)
	q.bulk = b
	return b.buf.B, nil
}

// Release gives the buffer back.
func (b *bulk) Release() {
	s, n := b.srv, b.n
	b.buf.Release()
	*b = bulk{}
	s.bulks.Put(b)
	s.budget.put(n)
}

// budget bounds the bytes of all buffers that are lent out. Clients that ask
// for much and take nothing would otherwise hold a megabyte for each call that
// they may have under way.
type budget struct {
	patience time.Duration // how long take waits

	mu    sync.Mutex
	free  int64
	queue []*waiter // first come, first served; each is one call under way
}

type waiter struct {
	n       int64
	granted chan struct{}
}

// take waits until n bytes are free and takes them. It gives up with ctx, or
// with ErrBusy.
func (b *budget) take(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.queue) == 0 && b.free >= n {
		b.free -= n
		b.mu.Unlock()
		return nil
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	b.queue = append(b.queue, w)
	b.mu.Unlock()
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	select {
	case <-w.granted:
		return nil
	case <-timer.C:
		return b.leave(w, vfs.ErrBusy)
	case <-ctx.Done():
		return b.leave(w, ctx.Err())
	}
}

// leave takes w out of the queue. If it was granted meanwhile, that is as good.
func (b *budget) leave(w *waiter, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, w)
	if i < 0 {
		return nil
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.grant() // those behind may want less
	return err
}

// put gives n bytes back.
func (b *budget) put(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.grant()
}

// grant serves who is first in the queue. mu is held.
func (b *budget) grant() {
	for len(b.queue) > 0 && b.queue[0].n <= b.free {
		b.free -= b.queue[0].n
		close(b.queue[0].granted)
		b.queue = slices.Delete(b.queue, 0, 1)
	}
}
