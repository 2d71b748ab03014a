package fileapi

import (
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/bufpool"
)

const (
	// portion is what a call takes of the memory at once, in bytes.
	portion = 16 << 10
	// costPerByte is the memory that one byte of a message costs where package connect
	// reads it: the buffer that it comes in, which doubles as it grows, and the message
	// that is made of it.
	costPerByte = 3
	// maxLent bounds the buffers that are lent to a call: the beginning of a message,
	// the whole of it, and an answer.
	maxLent = 3
)

// admission counts what calls hold, of all clients and of each.
type admission struct {
	limits  *Limits
	buffers *bufpool.Pool
	memory  atomic.Int64

	mu      sync.Mutex
	calls   int                // guarded by mu
	clients map[string]*client // guarded by mu; those with calls in progress
}

// client is the share of one identity.
type client struct {
	calls  int // guarded by admission.mu
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
}

// enter admits a call of the identity who, or is an error. The call leaves.
func (a *admission) enter(who string) (*call, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls >= a.limits.Calls {
		return nil, exhausted("the server has as many calls in progress as it takes")
	}
	c := a.clients[who]
	if c == nil {
		c = &client{}
		a.clients[who] = c
	}
	if c.calls >= a.limits.CallsPerClient {
		return nil, exhausted("this client has as many calls in progress as it may")
	}
	a.calls++
	c.calls++
	return &call{a: a, client: c, who: who}, nil
}

// leave gives back all that the call has.
func (c *call) leave() {
	c.letGo()
	for _, b := range c.lent[:c.loans] {
		b.Release()
	}
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	c.a.calls--
	if c.client.calls--; c.client.calls == 0 {
		delete(c.a.clients, c.who)
	}
}

// hold takes n more bytes of memory.
func (c *call) hold(n int) error {
	c.held += int64(n)
	if c.held <= c.taken {
		return nil
	}
	more := (c.held - c.taken + portion - 1) / portion * portion
	c.taken += more
	// Add first and look then: of two calls at the bound both may fail, but no two
	// pass it together.
	if c.client.memory.Add(more) > c.a.limits.MemoryPerClient {
		c.a.memory.Add(more)
		return exhausted("the calls of this client hold as much memory as they may")
	}
	if c.a.memory.Add(more) > c.a.limits.Memory {
		return exhausted("the calls in progress hold as much memory as they may")
	}
	return nil
}

// lend lends the call n bytes until it leaves, at most maxLent times. That they are
// counted is for hold to see to.
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

// inProgress is the calls and the memory of all clients.
func (a *admission) inProgress() (calls int, memory int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls, a.memory.Load()
}

func exhausted(text string) error {
	return connect.NewError(connect.CodeResourceExhausted, plainError(text))
}

// plainError is an error that is text alone.
type plainError string

func (e plainError) Error() string { return string(e) }
