package fileapi

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

const (
	// portion is the unit in which a call takes memory, in bytes.
	portion = 16 << 10
	// costPerByte is the memory that one byte of a message costs where package connect
	// reads it: the buffer, which doubles as it grows, and the decoded message.
	costPerByte = 3
	// maxLent bounds the buffers that are lent to a call: for a message and its answer.
	maxLent = 2
)

// admission counts what calls hold, of all clients and of each.
type admission struct {
	limits  *Limits
	buffers *bufpool.Pool
	memory  atomic.Int64
	drain   drain

	mu      sync.Mutex
	calls   int                // guarded by mu
	search  int                // guarded by mu; calls that search
	telling int                // guarded by mu; denied requests that Options.Observe is being told of
	clients map[string]*client // guarded by mu; those with calls in progress
	closed  bool               // guarded by mu; no more calls are admitted
	first   *call              // guarded by mu; of all calls in progress
	idle    chan struct{}      // guarded by mu; closed when calls and telling are 0; nil: nothing waits
}

// client is the share of one identity.
type client struct {
	calls  int // guarded by admission.mu
	search int // guarded by admission.mu; calls that search
	memory atomic.Int64
}

// call is a call in progress. It is its handler's goroutine's.
type call struct {
	a      *admission
	client *client
	who    string
	held   int64 // memory that it needs
	taken  int64 // memory, a multiple of portion
	lent   [maxLent]*bufpool.Buffer
	loans  int

	pacer        atomic.Pointer[pacer] // nil: not yet
	before, next *call                 // guarded by admission.mu
}

// enter admits a call of the identity who, or returns an error. The caller must call
// leave in the end.
func (a *admission) enter(who string) (*call, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errClosed
	}
	if a.calls >= a.limits.Calls {
		return nil, exhausted("the server has as many calls in progress as it takes")
	}
	c := a.clients[who]
	if c == nil {
		c = &client{}
		a.clients[who] = c
	}
	if !within(int64(c.calls), int64(a.limits.CallsPerClient), int64(a.limits.Calls-a.calls)) {
		return nil, exhausted("this client has as many calls in progress as it may")
	}
	a.calls++
	c.calls++
	in := &call{a: a, client: c, who: who, next: a.first}
	if a.first != nil {
		a.first.before = in
	}
	a.first = in
	return in, nil
}

// within reports whether a client that holds so much may have more: it must have less
// than its own bound, and less than is free. The first client that takes all it can
// leaves half, the next one a quarter.
func within(held, own, free int64) bool { return held < own && held < free }

// leave gives back all that the call has.
func (c *call) leave() {
	c.letGo()
	for _, b := range c.lent[:c.loans] {
		b.Release()
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	c.a.calls--
	if c.next != nil {
		c.next.before = c.before
	}
	if c.before != nil {
		c.before.next = c.next
	} else {
		c.a.first = c.next
	}
	if c.client.calls--; c.client.calls == 0 {
		delete(c.a.clients, c.who)
	}
	c.a.rest()
}

// tell calls f, unless the server is closed. wait waits for it.
func (a *admission) tell(f func()) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.telling++
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.telling--
		a.rest()
	}()
	f()
}

// rest wakes wait if there is nothing left to wait for. The caller holds mu.
func (a *admission) rest() {
	if a.calls+a.telling == 0 && a.idle != nil {
		close(a.idle)
		a.idle = nil
	}
}

// close makes enter fail from now on.
func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// wait returns when no call is in progress, or when ctx ends.
func (a *admission) wait(ctx context.Context) error {
	a.mu.Lock()
	if a.calls+a.telling == 0 {
		a.mu.Unlock()
		return nil
	}
	if a.idle == nil {
		a.idle = make(chan struct{})
	}
	idle := a.idle
	a.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// beginSearch admits a call as a search, or returns an error. The caller must call endSearch in the end.
func (c *call) beginSearch() error {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	switch l := a.limits; {
	case a.search >= l.Searches:
		return exhausted("the server has as many searches in progress as it takes")
	case !within(int64(c.client.search), int64(l.SearchesPerClient), int64(l.Searches-a.search)):
		return exhausted("this client has as many searches in progress as it may")
	}
	a.search++
	c.client.search++
	return nil
}

func (c *call) endSearch() {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	c.a.search--
	c.client.search--
}

// hold takes n more bytes of memory.
func (c *call) hold(n int) error {
	c.held += int64(n)
	if c.held <= c.taken {
		return nil
	}
	more := (c.held - c.taken + portion - 1) / portion * portion
	c.taken += more
	// Add first, then compare: of two calls at the bound both may fail, but they cannot
	// both pass it.
	l, mine, all := c.a.limits, c.client.memory.Add(more), c.a.memory.Add(more)
	switch {
	case all > l.Memory:
		return exhausted("the calls in progress hold as much memory as they may")
	case mine > l.MemoryPerClient, !within(mine-more, l.MemoryPerClient, l.Memory-all+more):
		return exhausted("the calls of this client hold as much memory as they may")
	}
	return nil
}

// lend lends the call n bytes until it leaves, at most maxLent times. The caller must
// have counted them by hold.
func (c *call) lend(n int) []byte {
	b := c.a.buffers.Get(n)
	c.lent[c.loans] = b
	c.loans++
	return b.B
}

// letGo gives the memory back.
func (c *call) letGo() {
	c.a.memory.Add(-c.taken)
	c.client.memory.Add(-c.taken)
	c.held, c.taken = 0, 0
}

// inProgress is the calls, those that search among them, and the memory of all clients.
func (a *admission) inProgress() (calls, searches int, memory int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls, a.search, a.memory.Load()
}

// Reason is why a request or connection is denied what it asks for.
type Reason uint8

const (
	_               Reason = iota
	Unauthenticated        // the caller is not known
	TooMany                // the bound of calls, connections or memory is reached
	TooLarge               // the message or the file is too large
	Closing                // the server was closed
)

var reasons = [...]string{"", "unauthenticated", "too_many", "too_large", "closing"}

// String returns the name, such as "too_many".
func (r Reason) String() string { return reasons[r] }

// denial is an error that is counted by its reason.
type denial struct {
	why  Reason
	text string
}

func (d *denial) Error() string { return d.text }

// errClosed is what calls get, and uploads, that begin after Close.
var errClosed = connect.NewError(connect.CodeUnavailable, &denial{Closing, "the server is closing"})

func exhausted(text string) error {
	return connect.NewError(connect.CodeResourceExhausted, &denial{TooMany, text})
}

func oversize(format string, a ...any) error {
	return connect.NewError(connect.CodeResourceExhausted, &denial{TooLarge, fmt.Sprintf(format, a...)})
}

// plainError is an error that is text alone.
type plainError string

func (e plainError) Error() string { return string(e) }
