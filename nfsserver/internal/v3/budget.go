package v3

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/nfsserver/internal/peer"
	"github.com/nfsbox/nfsbox/vfs"
)

// budget bounds the bytes of all buffers that are lent out. A buffer comes back when the
// client's socket has taken its bytes; but a client may ask for much and receive nothing.
// So a connection that has connBulk waits until its own socket has taken some. And a
// client, on any number of connections, gets no more than one part in leaves of what it
// leaves to others. One client alone thus gets a quarter of all, and the next a quarter
// of what is left. Clients that wait for the same bytes take turns.
type budget struct {
	patience time.Duration // how long take waits for what others have
	perConn  int64         // what one connection is lent at once

	mu      sync.Mutex
	free    int64
	short   bool // the first in turn waits for bytes that others have
	readers map[*peer.Conn]*reader
	clients map[string]*client // by peer.Conn.Share
	turn    []*client          // those with readers in turn
	spare   []*reader          // to be used again, with a client each
}

// client is one client at a budget; guarded by budget.mu.
type client struct {
	share string
	held  int64
	users int       // readers
	turn  []*reader // those whose first waiter does not wait for its own connection
}

// reader is one connection at a budget, while it holds something or waits; guarded
// by budget.mu.
type reader struct {
	conn   *peer.Conn
	client *client
	held   int64
	queue  []*waiter // first come, first served; each is one call under way
	inTurn bool      // it is in client.turn
}

type waiter struct {
	n       int64
	granted chan struct{} // closed when it has what it waits for
}

// maxSpareReaders bounds the readers that are kept to be used again. Further ones are left
// to the garbage collector.
const maxSpareReaders = 64

func newBudget(limit int64) budget {
	return budget{
		patience: maxWait, free: limit, perConn: min(connBulk, limit/connShare),
		readers: make(map[*peer.Conn]*reader), clients: make(map[string]*client),
	}
}

// take waits until conn may be lent n bytes more and takes them for it. It gives up when
// ctx ends. After patience it is ErrBusy if the bytes are with other clients; while the
// client itself has yet to receive what it was lent, take waits on.
func (b *budget) take(ctx context.Context, conn *peer.Conn, n int64) (*reader, error) {
	b.mu.Lock()
	r := b.reader(conn)
	if len(r.queue) == 0 && !b.short && b.roomFor(r, n) && b.within(r.client, n) && n <= b.free {
		b.give(r, n)
		b.mu.Unlock()
		return r, nil
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	r.queue = append(r.queue, w)
	b.settle(r)
	b.serve()
	b.mu.Unlock()
	timer := time.NewTimer(b.patience)
	defer timer.Stop()
	for {
		var err error
		select {
		case <-w.granted:
			return r, nil
		case <-timer.C:
			err = vfs.ErrBusy
		case <-ctx.Done():
			err = ctx.Err()
		}
		over, err := b.leave(r, w, err)
		if over && err != nil {
			return nil, err
		}
		if over {
			return r, nil
		}
		timer.Reset(b.patience)
	}
}

// leave removes w from r's queue after err. It does not, and over is false, if patience has
// ended while w waits for its own client. If w was granted meanwhile, there is no error.
func (b *budget) leave(r *reader, w *waiter, err error) (over bool, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(r.queue, w)
	if i < 0 {
		return true, nil
	}
	if err == vfs.ErrBusy && (!r.inTurn || !b.within(r.client, w.n)) { //nolint:errorlint // it is our own, as it was given
		return false, nil
	}
	r.queue = slices.Delete(r.queue, i, i+1)
	b.settle(r)
	b.serve() // those behind may want less
	b.forget(r)
	return true, err
}

// put gives back n bytes that r was lent.
func (b *budget) put(r *reader, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	r.held -= n
	r.client.held -= n
	b.settle(r)
	b.serve()
	b.forget(r)
}

// reader returns what is known of conn. mu is held.
func (b *budget) reader(conn *peer.Conn) *reader {
	if r := b.readers[conn]; r != nil {
		return r
	}
	var r *reader
	if last := len(b.spare) - 1; last >= 0 {
		r, b.spare = b.spare[last], b.spare[:last]
	} else {
		r = &reader{client: &client{}}
	}
	c := b.clients[conn.Share]
	if c == nil {
		c = r.client
		c.share = conn.Share
		b.clients[conn.Share] = c
	}
	c.users++
	r.conn, r.client = conn, c
	b.readers[conn] = r
	return r
}

// forget forgets a reader that holds nothing and waits for nothing, and the client
// that was the last one of. mu is held.
func (b *budget) forget(r *reader) {
	if r.held != 0 || len(r.queue) != 0 {
		return
	}
	delete(b.readers, r.conn)
	c := r.client
	if c.users--; c.users > 0 {
		return // a later reader is kept instead, with its client
	}
	delete(b.clients, c.share)
	*c = client{turn: c.turn[:0]}
	if len(b.spare) < maxSpareReaders {
		*r = reader{client: c, queue: r.queue[:0]}
		b.spare = append(b.spare, r)
	}
}

// roomFor reports whether the connection may be lent n bytes more: at least one
// buffer, whatever its size. mu is held.
func (b *budget) roomFor(r *reader, n int64) bool { return r.held == 0 || r.held+n <= b.perConn }

// within reports whether the client, with n bytes more, leaves enough to others; one
// buffer it may always have. mu is held.
func (b *budget) within(c *client, n int64) bool {
	return c.held == 0 || c.held+n <= (b.free-n)/leaves
}

// give lends n bytes to r. mu is held.
func (b *budget) give(r *reader, n int64) {
	b.free -= n
	r.held += n
	r.client.held += n
}

// settle puts r into its client's turn, and the client into the turn of all, if r has a
// waiter that its own connection does not hold up. Otherwise it removes them. mu is held.
func (b *budget) settle(r *reader) {
	c := r.client
	want := len(r.queue) > 0 && b.roomFor(r, r.queue[0].n)
	switch {
	case want == r.inTurn:
		return
	case want:
		if c.turn = append(c.turn, r); len(c.turn) == 1 {
			b.turn = append(b.turn, c)
		}
	default:
		c.turn = slices.DeleteFunc(c.turn, func(o *reader) bool { return o == r })
		if len(c.turn) == 0 {
			b.turn = slices.DeleteFunc(b.turn, func(o *client) bool { return o == c })
		}
	}
	r.inTurn = want
}

// serve lends to waiters, in turn. A client that has its share is passed over. If too
// little is free for the next one, all others wait: otherwise small requests could starve
// a large one. mu is held.
func (b *budget) serve() {
	b.short = false
	for i := 0; i < len(b.turn); {
		c := b.turn[i]
		r := c.turn[0]
		w := r.queue[0]
		if !b.within(c, w.n) {
			i++
			continue
		}
		if w.n > b.free {
			b.short = true
			return
		}
		b.give(r, w.n)
		close(w.granted)
		r.queue = slices.Delete(r.queue, 0, 1)
		// Out of the turn, and back in at its end.
		c.turn, b.turn, r.inTurn = slices.Delete(c.turn, 0, 1), slices.Delete(b.turn, i, i+1), false
		if len(c.turn) > 0 {
			b.turn = append(b.turn, c)
		}
		b.settle(r)
		i = 0
	}
}
