package oncrpc

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// budget bounds the memory of requests that are being received or held, over
// all connections.
//
// A request takes what it may come to need all at once, before it grows beyond
// smallRecord: no request waits that holds something, so that whatever has begun can
// be completed, executed and given back. Where requests wait, clients take
// turns; and no client, on however many connections, holds more than its share (fair).
// A client that begins many requests and completes none keeps out itself.
type budget struct {
	limit   int64
	mu      sync.Mutex
	free    int64
	clients map[string]*debtor
	turn    []*debtor  // those with requests that wait
	out     *allowance // the first of those that hold something, which form a list
	epoch   time.Time  // of its clock
}

// debtor is one client at a budget; guarded by budget.mu.
type debtor struct {
	of    *budget
	name  string
	users int // connections
	held  int64
	queue []*allowance // that wait
}

// allowance is what one request holds of a budget.
type allowance struct {
	by    *debtor
	held  int64
	want  int64         // with ready: what it waits for
	ready chan struct{} // closed when that was given

	conn          sender        // whose request it is; nil: of no client that could be too slow
	since         time.Duration // when it was given, or soon before; guarded by budget.mu once it is
	got           atomic.Int64  // bytes of the request that have come since
	whole         atomic.Bool   // all of it has
	before, after *allowance    // in budget.out; guarded by budget.mu
}

// sender is a connection that sends a request.
type sender interface {
	// tooSlow closes it: others wait for the memory of what it sends.
	tooSlow()
}

// newBudget returns a budget of limit bytes, or of more if that is less than leastRoom
// of the longest records need.
func newBudget(limit int64, longest int) *budget {
	limit = max(limit, leastRoom*room(longest))
	return &budget{limit: limit, free: limit, clients: make(map[string]*debtor), epoch: time.Now()}
}

// room is the memory that a record of n bytes takes: buffers come in powers of
// two.
func room(n int) int64 { return 1 << bits.Len(uint(max(n, 1)-1)) }

// join returns the client of that name, which is known until leave.
func (b *budget) join(name string) *debtor {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.clients[name]
	if d == nil {
		d = &debtor{of: b, name: name}
		b.clients[name] = d
	}
	d.users++
	return d
}

func (b *budget) leave(d *debtor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.users--; d.users == 0 {
		delete(b.clients, d.name)
	}
}

// take gives n bytes to a, which holds none, or so many already, and waits until
// that is possible. ok is false if stop is closed before.
func (b *budget) take(d *debtor, a *allowance, n int64, stop <-chan struct{}) (waited, ok bool) {
	if a.held >= n {
		return false, true
	}
	b.mu.Lock()
	a.by, a.want = d, n
	if len(b.turn) == 0 && b.fits(d, n) {
		b.give(a)
		b.mu.Unlock()
		return false, true
	}
	a.ready = make(chan struct{})
	if d.queue = append(d.queue, a); len(d.queue) == 1 {
		b.turn = append(b.turn, d)
	}
	b.serve()
	b.mu.Unlock()
	if b.await(d, a, stop) {
		return true, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(d.queue, a); i >= 0 {
		d.queue = slices.Delete(d.queue, i, i+1)
		b.settle(d)
		b.serve() // it may have stood in somebody's way
	}
	return true, false
}

// await waits until a has what it wants, and has the slowest go meanwhile. It answers
// false if stop is closed before.
func (b *budget) await(d *debtor, a *allowance, stop <-chan struct{}) bool {
	again := time.NewTicker(slowAfter)
	defer again.Stop()
	for {
		if slow := b.slowest(d, a); slow != nil {
			slow.tooSlow()
		}
		select {
		case <-a.ready:
			return true
		case <-stop:
			return false
		case <-again.C:
		}
	}
}

// slowest is the connection whose request arrives too slowly for a, of d, to wait for
// it: the slowest of the client that holds most of those that have any; nil: none
// does. If d has its share, a waits for d's own: to cut those off would
// have them sent again and again, and the least rate ends them in time.
func (b *budget) slowest(d *debtor, a *allowance) sender {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(d.queue, a) || !b.within(d, a.want) {
		return nil // it has what it wants, or its client has
	}
	now := time.Since(b.epoch)
	var slow *allowance
	var least int64
	for o := b.out; o != nil; o = o.after {
		age := now - o.since
		if o.conn == nil || o.whole.Load() || age < slowAfter {
			continue
		}
		rate := o.got.Load() * int64(time.Second) / int64(age)
		if rate < crowdedRate && (slow == nil || o.by.held > slow.by.held || o.by.held == slow.by.held && rate < least) {
			slow, least = o, rate
		}
	}
	if slow == nil {
		return nil
	}
	return slow.conn
}

// put gives back all that a holds.
func (a *allowance) put() {
	if a.held == 0 {
		return
	}
	b := a.by.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.before != nil {
		a.before.after = a.after
	} else {
		b.out = a.after
	}
	if a.after != nil {
		a.after.before = a.before
	}
	a.before, a.after = nil, nil
	b.free += a.held
	a.by.held -= a.held
	a.held = 0
	b.serve()
}

// fits reports whether d may have n bytes more. b.mu is held.
func (b *budget) fits(d *debtor, n int64) bool { return n <= b.free && b.within(d, n) }

// within reports whether n bytes more are within d's share. b.mu is held.
func (b *budget) within(d *debtor, n int64) bool { return fair(d.held, n, b.free) }

// give moves to a what it wants. b.mu is held.
func (b *budget) give(a *allowance) {
	b.free -= a.want
	a.by.held += a.want
	a.held = a.want
	if a.after = b.out; a.after != nil {
		a.after.before = a
	}
	b.out = a
}

// serve gives to those who wait, in turn. A client at the end of its share lets
// the next one pass; one for which too little is free does not, or the small ones
// would keep out the large for ever. b.mu is held.
func (b *budget) serve() {
	for i := 0; i < len(b.turn); {
		d := b.turn[i]
		a := d.queue[0]
		if !b.within(d, a.want) {
			i++
			continue
		}
		if a.want > b.free {
			return
		}
		b.give(a)
		a.since = time.Since(b.epoch)
		close(a.ready)
		d.queue[0] = nil
		d.queue = d.queue[1:]
		b.turn = append(slices.Delete(b.turn, i, i+1), d)
		b.settle(d)
		i = 0
	}
}

// settle takes d out of the turn if none of its requests waits. b.mu is held.
func (b *budget) settle(d *debtor) {
	if len(d.queue) > 0 {
		return
	}
	d.queue = nil
	if i := slices.Index(b.turn, d); i >= 0 {
		b.turn = slices.Delete(b.turn, i, i+1)
	}
}

// outstanding is how many bytes are out.
func (b *budget) outstanding() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit - b.free
}
