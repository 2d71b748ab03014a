package oncrpc

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// callKey is what makes two calls of one client the same.
type callKey struct {
	program, version, number uint32
	xid                      uint32
	hash                     uint64 // of arguments and credential
}

// asker gets the reply of a call under way: of the connections that have asked
// and are not gone, the one with the highest serial, which is the newest connection.
type asker struct {
	to     route
	serial uint64
}

// remembered is a call under way, and then its reply.
type remembered struct {
	key    callKey
	asker  asker       // under way: gets the reply
	joined bool        // under way: that is not the one that had it executed
	reply  []byte      // the message; its room is used again
	at     int64       // of the reply, in nanoseconds of Unix time
	next   *remembered // the reply after this one, or the next free one
}

// replyClient is what a cache knows of one client. Clients share nothing that is
// locked for each call.
type replyClient struct {
	cache *ReplyCache
	name  string
	share *replyShare
	size  atomic.Int64 // bytes of the replies; written under mu

	users int       // guarded by ReplyCache.mu: connections, and calls in datagrams
	left  time.Time // guarded by ReplyCache.mu: when the last of them did

	mu            sync.Mutex // after ReplyCache.mu, before serverConn.mu
	calls         map[callKey]*remembered
	most          int                      // how many there were since calls was made: a map does not shrink
	joins         map[*remembered]struct{} // of them, those that are joined; nil: none ever was
	replies       int                      // how many of them have been answered
	oldest, newer *remembered              // the replies in the order in which they were given
	free          *remembered              // to be used again
	spare         int                      // how many are free
	chunk         []byte                   // of which the next short replies are cut
}

func newReplyClient(r *ReplyCache, name string, s *replyShare) *replyClient {
	return &replyClient{cache: r, name: name, share: s, calls: make(map[callKey]*remembered)}
}

// verdict says what is to become of a call.
type verdict int

const (
	execute verdict = iota
	replay          // the reply is known
	joined          // the goroutine that executes the call will answer the asker
	outrun          // so it is, but a newer connection gets the answer
)

// claim looks for a call. With execute comes its memory, which must be settled;
// with replay the reply, a record in a buffer of pool; with joined the asker
// before this one, if there is one: it will get no answer. The call c, if not nil,
// is freed before that: from then on it may be over at any time, and Close no longer
// waits for it.
func (m *replyClient) claim(k callKey, a asker, pool *bufpool.Pool, c *Call) (verdict, *remembered, *bufpool.Buffer, route) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.calls[k]
	if e != nil && e.asker.to == nil {
		if now := m.cache.o.Now().UnixNano(); m.old(e, now) {
			for m.calls[k] != nil {
				m.pop(now) // what is older is too old as well
			}
			e = nil
		}
	}
	switch {
	case e == nil:
		e = m.take()
		e.key, e.asker = k, a
		m.calls[k] = e
		m.most = max(m.most, len(m.calls))
		return execute, e, nil, nil
	case e.asker.to == nil:
		b := pool.Get(markBytes + len(e.reply))
		b.B = append(beginRecord(b.B[:0]), e.reply...)
		_ = endRecord(b.B, 0, 0) // fails above 2 GiB
		return replay, nil, b, nil
	case a.serial < e.asker.serial && !e.asker.to.gone():
		return outrun, nil, nil, nil
	}
	var before route
	if e.joined {
		before = e.asker.to
	}
	if c != nil {
		c.aside()
	}
	e.asker, e.joined = a, true
	if m.joins == nil {
		m.joins = make(map[*remembered]struct{})
	}
	m.joins[e] = struct{}{}
	return joined, nil, nil, before
}

// leave ends the calls that to has joined: it is gone, and must not wait for
// what others execute.
func (m *replyClient) leave(to route) {
	n := 0
	m.mu.Lock()
	for e := range m.joins {
		if e.asker.to == to {
			e.joined = false
			delete(m.joins, e)
			n++
		}
	}
	m.mu.Unlock()
	for range n {
		to.enqueue(answered{})
	}
}

// settle ends a call that was claimed. What was answered, in these parts, is
// remembered; without parts the call is forgotten. It returns the asker that gets the
// reply, if that is not the one that had the call executed.
func (m *replyClient) settle(e *remembered, parts ...[]byte) route {
	now := m.cache.o.Now().UnixNano()
	m.mu.Lock()
	defer m.mu.Unlock()
	var to route
	if e.joined {
		to = e.asker.to
		delete(m.joins, e)
	}
	e.asker, e.joined = asker{}, false
	if len(parts) == 0 {
		delete(m.calls, e.key)
		m.give(e)
		return to
	}
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if cap(e.reply) < n || cap(e.reply) > 2*n+replySlack {
		e.reply = m.room(n)
	}
	e.reply = e.reply[:0]
	for _, p := range parts {
		e.reply = append(e.reply, p...)
	}
	e.at = now
	m.append(e)
	for range evictAtOnce {
		if m.keeps(m.oldest, now) {
			break
		}
		m.pop(now)
	}
	return to
}

// room is memory for a reply of n bytes. Short ones lie side by side: what is
// answered together is mostly forgotten together. m.mu is held.
func (m *replyClient) room(n int) []byte {
	if n > shortReply {
		return make([]byte, 0, n)
	}
	if len(m.chunk) < n {
		m.chunk = make([]byte, replyChunk)
	}
	p := m.chunk[:0:n]
	m.chunk = m.chunk[n:]
	return p
}

// append makes e the newest reply. m.mu is held.
func (m *replyClient) append(e *remembered) {
	if m.oldest == nil {
		m.oldest = e
	} else {
		m.newer.next = e
	}
	m.newer = e
	m.replies++
	m.grow(e.cost())
}

// old reports whether a reply may not be sent again any more, or a clock that was put
// back hides its age. m.mu is held.
func (m *replyClient) old(e *remembered, now int64) bool {
	return time.Duration(max(now-e.at, e.at-now)) > m.cache.o.MaxAge
}

// keeps reports whether e, which is the oldest reply, is to be kept. m.mu is held.
func (m *replyClient) keeps(e *remembered, now int64) bool {
	return !m.old(e, now) && (m.replies <= m.cache.o.PerClient || time.Duration(now-e.at) <= m.cache.o.Keep)
}

// expire forgets the replies that are too old.
func (m *replyClient) expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.oldest != nil && m.old(m.oldest, now.UnixNano()) {
		m.pop(now.UnixNano())
	}
}

// pop forgets the oldest reply. m.mu is held.
func (m *replyClient) pop(now int64) {
	e := m.oldest
	r := m.cache
	r.evicted.Add(1)
	if m.keeps(e, now) {
		r.evictedYoung.Add(1)
	}
	m.oldest = e.next
	m.replies--
	m.grow(-e.cost())
	delete(m.calls, e.key)
	m.give(e)
	if m.most > mapShrink*max(len(m.calls), minShrunk) {
		smaller := make(map[callKey]*remembered, len(m.calls))
		maps.Copy(smaller, m.calls)
		m.calls, m.most = smaller, len(smaller)
	}
}

// evict forgets the oldest replies, to make room for n bytes; one at least. It
// keeps nothing to be used again: there is too little memory.
func (m *replyClient) evict(n int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for until := m.size.Load() - max(n, 1); m.replies > 0 && m.size.Load() > until; {
		m.pop(now.UnixNano())
	}
	for m.free != nil {
		// Beside it in its slab there may be one that is in use.
		e := m.free
		m.free = e.next
		*e = remembered{}
	}
	m.spare, m.chunk = 0, nil
}

// grow counts n bytes more. m.mu is held.
func (m *replyClient) grow(n int64) {
	m.size.Add(n)
	m.share.size.Add(n)
	m.cache.bytes.Add(n)
}

// take returns a remembered for a new call; they are allocated in slabs. m.mu is
// held.
func (m *replyClient) take() *remembered {
	if m.free == nil {
		slab := make([]remembered, slabSize)
		for i := range slab[1:] {
			slab[i].next = &slab[i+1]
		}
		m.free, m.spare = &slab[0], slabSize
	}
	e := m.free
	m.free, e.next = e.next, nil
	m.spare--
	return e
}

// give takes e back, to be used again. m.mu is held.
func (m *replyClient) give(e *remembered) {
	*e = remembered{reply: e.reply[:0]}
	if cap(e.reply) > shortReply {
		e.reply = nil
	}
	if m.spare >= maxSpare {
		e.reply = nil
		return
	}
	e.next, m.free = m.free, e
	m.spare++
}

// cost is what a reply counts for.
func (e *remembered) cost() int64 { return int64(cap(e.reply)) + replyOverhead }
