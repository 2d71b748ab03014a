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
	MaxAge    time.Duration    // of a reply; what is older is forgotten; DefaultReplyAge
	Keep      time.Duration    // or this young: what is younger is evicted only for MaxBytes, and counted; DefaultKeepReplies
	MaxBytes  int64            // of all clients; DefaultReplyBytes
	Now       func() time.Time // time.Now
}

// ReplyCache is a duplicate request cache: it remembers the replies of calls
// that must not be executed twice ([Service].Once), so that a retransmission
// gets the answer that was lost and not a second execution. It knows a call by
// the client's address without its port, its user if that is known ([UserAddr]; a
// credential is no proof), its XID, its procedure, and a keyed
// hash of its arguments and its credential; of AUTH_SYS the stamp is left out,
// which some clients renew.
//
// A retransmission of a call that is under way joins it: the reply leaves on the
// newest connection that has asked. One of a call that was answered is answered
// from memory, if its reply is not older than MaxAge. A call that was begun is finished even if its connection is lost;
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
	clients map[string]*replyClient // by clientName
	shares  map[string]*replyShare  // of them, by ShareOf
	left    int                     // how many clients have left
	swept   time.Time               // when all were last looked at
}

// replyShare are the clients that make room together where something is divided.
type replyShare struct {
	name    string
	members map[*replyClient]struct{} // guarded by ReplyCache.mu
	left    int                       // guarded by ReplyCache.mu: of them, those that have left
	size    atomic.Int64              // bytes of their replies
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
	o.MaxAge = cmp.Or(o.MaxAge, DefaultReplyAge)
	o.Keep = cmp.Or(o.Keep, DefaultKeepReplies)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultReplyBytes)
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &ReplyCache{o: o, clients: make(map[string]*replyClient), shares: make(map[string]*replyShare)}
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
// port, so that it is the same client when it connects again, and its user if that
// is known.
func clientName(a net.Addr) string {
	switch a := a.(type) {
	case nil:
		return ""
	case *UserAddr:
		name := a.User() + userMark + clientName(a.Addr)
		return name[:min(len(name), maxClientName)]
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

// client returns what is known of the client at a, which is not forgotten before
// release. That keeps nothing: release forgets a client that has no replies.
func (r *ReplyCache) client(a net.Addr) *replyClient {
	name, now := clientName(a), r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	m := r.clients[name]
	if m == nil {
		m = r.enter(name, ShareOf(a))
	} else if m.users == 0 {
		r.left--
		m.share.left--
	}
	m.users++
	return m
}

// enter makes a client, which is connected. r.mu is held.
func (r *ReplyCache) enter(name, share string) *replyClient {
	s := r.shares[share]
	if s == nil {
		s = &replyShare{name: share, members: make(map[*replyClient]struct{})}
		r.shares[share] = s
	}
	m := newReplyClient(r, name, s)
	s.members[m] = struct{}{}
	r.clients[name] = m
	return m
}

// release says that one who had asked for m needs it no more.
func (r *ReplyCache) release(m *replyClient) {
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.users--; m.users == 0 {
		r.leave(m, now)
	}
}

// leave says that m has left, and forgets it if it has no replies, or another if too
// many have left. r.mu is held.
func (r *ReplyCache) leave(m *replyClient, now time.Time) {
	m.left = now
	m.share.left++
	if r.left++; m.size.Load() == 0 {
		r.forget(m)
	} else if r.left > maxReplyClients {
		r.forgetOne(now)
	}
}

// forget forgets a client that has left, and has no replies. r.mu is held.
func (r *ReplyCache) forget(m *replyClient) {
	delete(r.clients, m.name)
	r.left--
	m.share.left--
	if delete(m.share.members, m); len(m.share.members) == 0 {
		delete(r.shares, m.share.name)
	}
}

// forgetOne forgets, of the share of which most have left, the client that did so
// longest ago. r.mu is held.
func (r *ReplyCache) forgetOne(now time.Time) {
	most := 0
	for _, s := range r.shares {
		most = max(most, s.left)
	}
	var oldest *replyClient
	for _, m := range r.clients {
		if m.users == 0 && m.share.left == most && (oldest == nil || m.left.Before(oldest.left)) {
			oldest = m
		}
	}
	if oldest != nil {
		oldest.evict(oldest.size.Load(), now)
		r.forget(oldest)
	}
}

// sweep forgets what is too old, once in MaxAge. r.mu is held.
func (r *ReplyCache) sweep(now time.Time) {
	if age := now.Sub(r.swept); age >= 0 && age < r.o.MaxAge {
		return
	}
	r.swept = now
	for _, m := range r.clients {
		m.expire(now)
		if m.users == 0 && m.size.Load() == 0 {
			r.forget(m)
		}
	}
}

// trim makes room when all replies together take too much: in the share that holds
// most, each client gives back its oldest ones, half of what it has at a time, so that
// one who writes without end, from however many addresses, does not cost others their
// memory.
func (r *ReplyCache) trim() {
	if r.bytes.Load() <= r.o.MaxBytes {
		return
	}
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for target := r.o.MaxBytes - r.o.MaxBytes/trimShare; r.bytes.Load() > target; {
		var most *replyShare
		for _, s := range r.shares {
			if most == nil || s.size.Load() > most.size.Load() {
				most = s
			}
		}
		if most == nil || most.size.Load() == 0 {
			return
		}
		for m := range most.members {
			over := r.bytes.Load() - target
			if over <= 0 {
				return
			}
			m.evict(min(over, m.size.Load()/2), now)
			if m.users == 0 && m.size.Load() == 0 {
				r.forget(m)
			}
		}
	}
}
