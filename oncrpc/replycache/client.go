package replycache

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// callKey is what makes two calls of one client the same.
type callKey struct {
	program, version, number uint32
	xid                      uint32
	hash                     uint64 // of arguments and credential
}

// asker gets the reply of a call under way. Of the connections that have asked and are
// not gone it is the one with the highest serial number, which is the newest.
type asker struct {
	to     oncrpc.Asker
	serial uint64
}

// entry is a call under way, and then its reply.
type entry struct {
	client *client
	key    callKey
	asker  asker  // under way: gets the reply; zero: the call was answered
	reply  []byte // the message; its memory is used again
	at     int64  // of the reply, in nanoseconds of Unix time
	next   *entry // the reply after this one, or the next free entry
}

// client is what a cache knows of one client. Clients share no lock that each call
// takes.
type client struct {
	cache *Cache
	name  string
	share *share
	size  atomic.Int64 // bytes of the replies; written under mu

	users int       // guarded by Cache.mu: connections, and calls in datagrams
	left  time.Time // guarded by Cache.mu: when the last of them did

	mu            sync.Mutex // after Cache.mu, before those of the server's connections
	calls         map[callKey]*entry
	most          int                 // the most entries since calls was made: a map does not shrink
	joins         map[*entry]struct{} // calls whose asker is not the one that had them executed; nil: none ever was
	replies       int                 // how many calls have been answered
	oldest, newer *entry              // the replies in the order in which they were given
	free          *entry              // to be used again
	spare         int                 // how many are free
	chunk         []byte              // the next short replies are cut from it
}

func newClient(r *Cache, name string, s *share) *client {
	return &client{cache: r, name: name, share: s, calls: make(map[callKey]*entry)}
}

// verdict is an oncrpc.Verdict, and one more.
type verdict int

const (
	execute verdict = iota
	replay          // the reply is known
	joined          // the goroutine that executes the call will answer the asker
	outrun          // it answers another one, on a newer connection
)

// claimant is an oncrpc.Claim as claim needs it.
type claimant interface {
	Replay(message []byte)
	PassOn()
}

// Claim looks for the call c.
func (m *client) Claim(c *oncrpc.Claim, to oncrpc.Asker, serial uint64) (oncrpc.Verdict, oncrpc.Entry) {
	r := m.cache
	k := callKey{c.Proc.Program, c.Proc.Version, c.Proc.Number, c.XID, r.key.call(c.Auth, c.Args.Rest())}
	v, e, before := m.claim(k, asker{to, serial}, c)
	switch v {
	case execute:
		return oncrpc.Execute, e
	case replay:
		r.hits.Add(1)
		return oncrpc.Replay, nil
	case outrun:
		before = to
		c.PassOn()
	}
	r.joined.Add(1)
	if before != nil {
		before.Unanswered()
	}
	return oncrpc.Joined, nil
}

// claim looks for a call. With execute comes its entry, which must be settled. With
// joined comes the asker before this one, if there is one: it gets no answer.
func (m *client) claim(k callKey, a asker, c claimant) (verdict, *entry, oncrpc.Asker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.calls[k]
	if e != nil && e.asker.to == nil {
		if now := m.cache.o.Now().UnixNano(); m.old(e, now) {
			for m.calls[k] != nil {
				m.pop(now) // older replies are too old as well
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
		return execute, e, nil
	case e.asker.to == nil:
		c.Replay(e.reply)
		return replay, nil, nil
	case a.serial < e.asker.serial && !e.asker.to.Gone():
		return outrun, nil, nil
	}
	var before oncrpc.Asker
	if m.joined(e) {
		before = e.asker.to
	}
	c.PassOn() // before the asker is entered: from then on its call may be over at any time
	e.asker = a
	if m.joins == nil {
		m.joins = make(map[*entry]struct{})
	}
	m.joins[e] = struct{}{}
	return joined, nil, before
}

// Leave ends the calls that to has joined.
func (m *client) Leave(to oncrpc.Asker) {
	n := 0
	m.mu.Lock()
	for e := range m.joins {
		if e.asker.to == to {
			delete(m.joins, e)
			n++
		}
	}
	m.mu.Unlock()
	for range n {
		to.Unanswered()
	}
}

// Release ends one use of the client.
func (m *client) Release() { m.cache.release(m) }

// Remember keeps the reply, unless it is too long.
func (e *entry) Remember(head, bulk, tail []byte) oncrpc.Asker {
	m := e.client
	n := len(head) + len(bulk) + len(tail)
	if n > maxReply {
		m.cache.tooLong.Add(1)
		return m.drop(e)
	}
	to := m.keep(e, n, head, bulk, tail)
	m.cache.trim()
	return to
}

// Forget keeps no reply.
func (e *entry) Forget() oncrpc.Asker {
	e.client.cache.forgotten.Add(1)
	return e.client.drop(e)
}

// drop forgets a call that was claimed.
func (m *client) drop(e *entry) oncrpc.Asker {
	m.mu.Lock()
	defer m.mu.Unlock()
	to := m.settle(e)
	delete(m.calls, e.key)
	m.give(e)
	return to
}

// keep remembers the reply of a call that was claimed: these parts, n bytes together.
func (m *client) keep(e *entry, n int, head, bulk, tail []byte) oncrpc.Asker {
	now := m.cache.o.Now().UnixNano()
	m.mu.Lock()
	defer m.mu.Unlock()
	to := m.settle(e)
	if cap(e.reply) < n || cap(e.reply) > 2*n+slack {
		e.reply = m.room(n)
	}
	e.reply = append(append(append(e.reply[:0], head...), bulk...), tail...)
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

// settle ends a call that was claimed. It returns the asker that gets the reply, or nil
// if that is the one that had the call executed. m.mu is held.
func (m *client) settle(e *entry) (to oncrpc.Asker) {
	if m.joined(e) {
		to = e.asker.to
		delete(m.joins, e)
	}
	e.asker = asker{}
	return to
}

// joined reports whether e's asker is not the one that had the call executed. m.mu is
// held.
func (m *client) joined(e *entry) bool {
	_, ok := m.joins[e]
	return ok
}

// room is memory for a reply of n bytes. Short ones lie side by side: replies that are
// given together are mostly forgotten together. m.mu is held.
func (m *client) room(n int) []byte {
	if n > shortReply {
		return make([]byte, 0, n)
	}
	if len(m.chunk) < n {
		m.chunk = make([]byte, chunkBytes)
	}
	p := m.chunk[:0:n]
	m.chunk = m.chunk[n:]
	return p
}

// append makes e the newest reply. m.mu is held.
func (m *client) append(e *entry) {
	if m.oldest == nil {
		m.oldest = e
	} else {
		m.newer.next = e
	}
	m.newer = e
	m.replies++
	m.grow(e.cost())
}

// old reports whether a reply is too old to be sent again, or was given after now: a
// clock that was put back hides its age. m.mu is held.
func (m *client) old(e *entry, now int64) bool {
	return time.Duration(max(now-e.at, e.at-now)) > m.cache.o.MaxAge
}

// keeps reports whether e, which is the oldest reply, is to be kept. m.mu is held.
func (m *client) keeps(e *entry, now int64) bool {
	return !m.old(e, now) && (m.replies <= m.cache.o.PerClient || time.Duration(now-e.at) <= m.cache.o.Keep)
}

// expire forgets the replies that are too old.
func (m *client) expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.oldest != nil && m.old(m.oldest, now.UnixNano()) {
		m.pop(now.UnixNano())
	}
}

// pop forgets the oldest reply. m.mu is held.
func (m *client) pop(now int64) {
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
		smaller := make(map[callKey]*entry, len(m.calls))
		maps.Copy(smaller, m.calls)
		m.calls, m.most = smaller, len(smaller)
	}
}

// evict forgets the oldest replies, to make room for n bytes; one at least. It keeps no
// memory to be used again: there is too little.
func (m *client) evict(n int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for until := m.size.Load() - max(n, 1); m.replies > 0 && m.size.Load() > until; {
		m.pop(now.UnixNano())
	}
	for m.free != nil {
		// An entry in use may keep the slab, so let go of what the free ones point to.
		e := m.free
		m.free = e.next
		*e = entry{}
	}
	m.spare, m.chunk = 0, nil
}

// grow counts n bytes more. m.mu is held.
func (m *client) grow(n int64) {
	m.size.Add(n)
	m.share.size.Add(n)
	m.cache.bytes.Add(n)
}

// take returns an entry for a new call; they are allocated in slabs. m.mu is held.
func (m *client) take() *entry {
	if m.free == nil {
		slab := make([]entry, slabSize)
		for i := range slab[1:] {
			slab[i].next = &slab[i+1]
		}
		m.free, m.spare = &slab[0], slabSize
	}
	e := m.free
	m.free, e.next, e.client = e.next, nil, m
	m.spare--
	return e
}

// give takes e back, to be used again. m.mu is held.
func (m *client) give(e *entry) {
	*e = entry{reply: e.reply[:0]}
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

// cost is what a reply counts for, in bytes.
func (e *entry) cost() int64 { return int64(cap(e.reply)) + overhead }
