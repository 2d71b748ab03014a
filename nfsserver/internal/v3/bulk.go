package v3

import (
	"context"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// bulk is a lent buffer and what was taken for it from the budget. oncrpc
// releases it when its bytes have been written.
type bulk struct {
	buf *bufpool.Buffer
	srv *Service
	by  *reader
	n   int64
}

// lend lends a buffer of n bytes to q, once the budget allows it.
func (q *request) lend(ctx context.Context, n int) ([]byte, error) {
	s := q.srv
	by, err := s.budget.take(ctx, q.conn, int64(n))
	if err != nil {
		return nil, err
	}
	b := s.bulks.Get().(*bulk)
	b.buf, b.srv, b.by, b.n = s.buffers.Get(n), s, by, int64(n)
	q.bulk = b
	return b.buf.B, nil
}

func (b *bulk) Release() {
	s, by, n := b.srv, b.by, b.n
	b.buf.Release()
	*b = bulk{}
	s.bulks.Put(b)
	s.budget.put(by, n)
}
