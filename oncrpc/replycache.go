package oncrpc

import (
	"cmp"
	"crypto/rand"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ReplyCacheOptions bounds a reply cache. Zero values are defaults, and so is a
// negative PerClient.
type ReplyCacheOptions struct {
	PerClient int              // replies kept of one client at least; DefaultRepliesPerClient
	Keep      time.Duration    // or this young: what is younger is evicted only for MaxBytes, and counted; DefaultKeepReplies
	MaxBytes  int64            // of all clients; DefaultReplyBytes
	Now       func() time.Time // time.Now
}

// ReplyCache is a duplicate request cache: it remembers the replies of calls
// that must not be executed twice ([Service].Once), so that a retransmission
// gets the answer that was lost and not a second execution. It knows a call by
// the client's address without its port, its XID, its procedure, and a keyed
// hash of its arguments and its credential; of AUTH_SYS the stamp is left out,
// which some clients renew.
//
// A retransmission of a call that is under way joins it: the reply leaves on the
// newest connection that has asked. One of a call that was answered is answered
// from memory. A call that was begun is finished even if its connection is lost;
// one that was not is dropped with its connection.
//
// All methods may be called concurrently. Servers that follow each other in one
// process may share a cache; for a restart of the process there are Save and
// Load.
type ReplyCache struct {
	o      ReplyCacheOptions
	key    hashKey // written by Load alone, before there are clients
	serial atomic.Uint64
	bytes  atomic.Int64 // of all clients

	hits, joined, forgotten, tooLong, evicted, evictedYoung atomic.Uint64

	mu      sync.Mutex
	clients map[string]*replyClient // by address without port
}

// ReplyCacheStats are counters of a reply cache. Replies, Bytes, Clients and
// UnderWay are what there is now, the others only grow.
type ReplyCacheStats struct {
	Replies  int   // remembered
	Bytes    int64 // what they take
	Clients  int   // known: connected, or with replies
	UnderWay int   // calls begun, and not yet answered

	Hits         uint64 // calls answered from memory
	Joined       uint64 // calls that joined one under way
	Forgotten    uint64 // replies not remembered because they were failures, or Forget asked for it
	TooLong      uint64 // replies not remembered because they were too long
	Evicted      uint64 // replies evicted
	EvictedYoung uint64 // of them, for want of memory: younger than Keep, or among the last PerClient
}

// NewReplyCache returns an empty cache.
func NewReplyCache(o ReplyCacheOptions) *ReplyCache {
	if o.PerClient <= 0 {
		o.PerClient = DefaultRepliesPerClient
	}
	o.Keep = cmp.Or(o.Keep, DefaultKeepReplies)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultReplyBytes)
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &ReplyCache{o: o, clients: make(map[string]*replyClient)}
	var seed [hashKeyBytes]byte
	_, _ = rand.Read(seed[:]) // never fails (crypto/rand)
	r.key.decode(seed[:])
	return r
}

// Stats returns the cache's counters.
func (r *ReplyCache) Stats() ReplyCacheStats {
	st := ReplyCacheStats{
		Bytes: r.bytes.Load(), Hits: r.hits.Load(), Joined: r.joined.Load(),
		Forgotten: r.forgotten.Load(), TooLong: r.tooLong.Load(),
		Evicted: r.evicted.Load(), EvictedYoung: r.evictedYoung.Load(),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	st.Clients = len(r.clients)
	for _, m := range r.clients {
		m.mu.Lock()
		st.Replies += m.replies
		st.UnderWay += len(m.calls) - m.replies
		m.mu.Unlock()
	}
	return st
}

// clientName is what a cache knows the client at a by: its address without the
// port, so that it is the same client when it connects again.
func clientName(a net.Addr) string {
	switch a := a.(type) {
	case nil:
		return ""
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().String()
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap().String()
	}
	s := a.String()
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return s[:min(len(s), maxClientName)]
}

// client returns what is known of the client at a, who is not forgotten before
// release.
func (r *ReplyCache) client(a net.Addr) *replyClient {
	name, now := clientName(a), r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.clients[name]
	if m == nil {
		if len(r.clients) >= maxReplyClients {
			r.forgetOne(now)
		}
		m = newReplyClient(r, name)
		r.clients[name] = m
	}
	m.users++
	return m
}

// release says that one who had asked for m needs it no more.
func (r *ReplyCache) release(m *replyClient) {
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	m.users--
	m.left = now
	if m.users == 0 && m.size.Load() == 0 {
		delete(r.clients, m.name)
	}
}

// forgetOne forgets the client that has left longest ago. Those who are here are
// as many as the servers have connections. r.mu is held.
func (r *ReplyCache) forgetOne(now time.Time) {
	var oldest *replyClient
	for _, m := range r.clients {
		if m.users == 0 && (oldest == nil || m.left.Before(oldest.left)) {
			oldest = m
		}
	}
	if oldest != nil {
		oldest.evict(oldest.size.Load(), now)
		delete(r.clients, oldest.name)
	}
}

// trim makes room when all replies together take too much: the clients that hold
// most give back their oldest ones, half of what they have at a time, so that
// one who writes without end does not cost others their memory.
func (r *ReplyCache) trim() {
	if r.bytes.Load() <= r.o.MaxBytes {
		return
	}
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for target := r.o.MaxBytes - r.o.MaxBytes/trimShare; r.bytes.Load() > target; {
		var most *replyClient
		for _, m := range r.clients {
			if most == nil || m.size.Load() > most.size.Load() {
				most = m
			}
		}
		if most == nil || most.size.Load() == 0 {
			return
		}
		most.evict(min(r.bytes.Load()-target, most.size.Load()/2), now)
		if most.users == 0 && most.size.Load() == 0 {
			delete(r.clients, most.name)
		}
	}
}
