// Package budget divides an amount of memory among clients. A server's connections take
// from it what their requests need.
//
// A request takes all that it may come to need at once, before its buffer grows. So no
// request waits that holds something, and each that has begun can be completed, executed
// and given back. Where requests wait, their clients take turns. No client, on however
// many connections, holds more than its share ([Fair]): one that begins many requests and
// completes none only locks out itself.
//
// A sender may be slow on purpose. Where a request waits, the slowest of those that still
// arrive loses its connection.
package budget

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// leastRoom is for how many of the longest requests there is room in any budget.
	leastRoom = 2

	// A request that waits ends the connection of another one: of one that has been
	// arriving for slowAfter, at less than crowdedRate bytes a second. Of several it is
	// the slowest of the client that holds most. A request whose client has its share
	// ends none, and waits for that client's own. It looks again after each slowAfter.
	slowAfter   = 500 * time.Millisecond
	crowdedRate = 128 << 10
)

// Budget is the amount. All methods may be called concurrently.
type Budget struct {
	limit   int64
	mu      sync.Mutex
	free    int64
	clients map[string]*Client
	turn    []*Client  // those with requests that wait
	out     *Allowance // the first of those that hold something, which form a list
	epoch   time.Time  // its clock is the time since then
}

// Client is one client of a budget. Budget.mu guards it.
type Client struct {
	of    *Budget
	name  string
	users int // Joins without a Leave
	held  int64
	queue []*Allowance // its requests that wait, the oldest first
}

// Sender is a connection that sends a request.
type Sender interface {
	// TooSlow closes it: others wait for the memory of what it sends.
	TooSlow()
}

// Allowance is what one request holds. Its zero value holds nothing.
type Allowance struct {
	From  Sender        // set before Take; nil: it never counts as too slow
	Since time.Duration // set before Take: when the request began, on the clock of New's epoch
	Got   atomic.Int64  // bytes of the request that have come since Take
	Whole atomic.Bool   // all of it has

	by            *Client
	held          int64
	want          int64         // with ready: what it waits for
	ready         chan struct{} // closed when that was given
	before, after *Allowance    // in Budget.out; guarded by Budget.mu
}

// New returns a budget of limit bytes, or of more if two requests of longest bytes need
// more. Its clock is the time since epoch.
func New(limit int64, longest int, epoch time.Time) *Budget {
	limit = max(limit, leastRoom*Room(longest))
	return &Budget{limit: limit, free: limit, clients: make(map[string]*Client), epoch: epoch}
}

// Room is the memory that a record of n bytes takes: buffers come in powers of two.
func Room(n int) int64 { return 1 << bits.Len(uint(max(n, 1)-1)) }

// Fair reports whether a client that holds held units may have n more of those that are
// free. What it holds afterwards must not exceed what stays free. This is the dynamic
// threshold of switches with a shared memory (Choudhury and Hahne, 1998), which does not
// need the number of clients. One client alone has half. Several that go on asking have
// equal parts, as large as what stays free. A client that holds nothing may have all that
// is free.
func Fair(held, n, free int64) bool { return held == 0 || held+n <= free-n }

// Join returns the client of that name. It is known until each Join has had its Leave.
func (b *Budget) Join(name string) *Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.clients[name]
	if d == nil {
		d = &Client{of: b, name: name}
		b.clients[name] = d
	}
	d.users++
	return d
}

// Leave ends one Join. No request of that user may hold anything, or wait.
func (d *Client) Leave() {
	b := d.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.users--; d.users == 0 {
		delete(b.clients, d.name)
	}
}

// Outstanding is how many bytes are given away.
func (b *Budget) Outstanding() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit - b.free
}

// Held reports whether a holds anything.
func (a *Allowance) Held() bool { return a.held > 0 }

// Take gives n bytes to a, which holds nothing, and waits until that is possible. It does
// nothing if a holds as many. ok is false if stop is closed before. One goroutine at a
// time may use a, but for Got and Whole.
func (d *Client) Take(a *Allowance, n int64, stop <-chan struct{}) (waited, ok bool) {
	if a.held >= n {
		return false, true
	}
	b := d.of
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
	if d.await(a, stop) {
		return true, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(d.queue, a); i >= 0 {
		d.queue = slices.Delete(d.queue, i, i+1)
		b.settle(d)
		b.serve() // others may have waited behind it
	}
	return true, false
}

// await waits until a has what it wants, and ends slow senders meanwhile. It returns
// false if stop is closed before.
func (d *Client) await(a *Allowance, stop <-chan struct{}) bool {
	again := time.NewTicker(slowAfter)
	defer again.Stop()
	for {
		if slow := d.of.slowest(d, a); slow != nil {
			slow.TooSlow()
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

// slowest is the sender whose request arrives too slowly for a, of d, to wait for it: of
// the clients with such requests the one that holds most, and of its requests the
// slowest. It is nil if there is none, or if d has its share. In that case a waits for
// d's own requests: a client that lost them would send them again and again, and the
// least rate ends them in time.
func (b *Budget) slowest(d *Client, a *Allowance) Sender {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(d.queue, a) || !b.within(d, a.want) {
		return nil
	}
	now := time.Since(b.epoch)
	var slow *Allowance
	var least int64
	for o := b.out; o != nil; o = o.after {
		age := now - o.Since
		if o.From == nil || o.Whole.Load() || age < slowAfter {
			continue
		}
		rate := o.Got.Load() * int64(time.Second) / int64(age)
		if rate < crowdedRate && (slow == nil || o.by.held > slow.by.held || o.by.held == slow.by.held && rate < least) {
			slow, least = o, rate
		}
	}
	if slow == nil {
		return nil
	}
	return slow.From
}

// Put gives back all that a holds.
func (a *Allowance) Put() {
	if a.held != 0 {
		a.put()
	}
}

func (a *Allowance) put() {
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

// fits reports whether d may have n bytes more now. b.mu is held.
func (b *Budget) fits(d *Client, n int64) bool { return n <= b.free && b.within(d, n) }

// within reports whether n bytes more are within d's share. b.mu is held.
func (b *Budget) within(d *Client, n int64) bool { return Fair(d.held, n, b.free) }

// give moves to a what it wants. b.mu is held.
func (b *Budget) give(a *Allowance) {
	b.free -= a.want
	a.by.held += a.want
	a.held = a.want
	if a.after = b.out; a.after != nil {
		a.after.before = a
	}
	b.out = a
}

// serve gives to the requests that wait, client by client. A client that has its share
// lets the next one pass. A request for which too little is free stops the others, or
// small ones would keep out a large one for ever. b.mu is held.
func (b *Budget) serve() {
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
		a.Since = time.Since(b.epoch)
		close(a.ready)
		d.queue[0] = nil
		d.queue = d.queue[1:]
		b.turn = append(slices.Delete(b.turn, i, i+1), d)
		b.settle(d)
		i = 0
	}
}

// settle takes d out of the turn if none of its requests waits. b.mu is held.
func (b *Budget) settle(d *Client) {
	if len(d.queue) > 0 {
		return
	}
	d.queue = nil
	if i := slices.Index(b.turn, d); i >= 0 {
		b.turn = slices.Delete(b.turn, i, i+1)
	}
}
