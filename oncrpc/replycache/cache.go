package replycache

import (
	"cmp"
	"crypto/rand"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// Options bounds a cache. Zero values are defaults, and so is a negative PerClient.
type Options struct {
	PerClient int              // replies kept of one client at least; DefaultPerClient
	MaxAge    time.Duration    // of a reply; an older one is forgotten; DefaultMaxAge
	Keep      time.Duration    // a younger reply is evicted only for MaxBytes, and counted; DefaultKeep
	MaxBytes  int64            // of all clients; DefaultMaxBytes
	Now       func() time.Time // time.Now
}

// Cache is a duplicate request cache. All methods may be called concurrently.
type Cache struct {
	o      Options
	key    hashKey // written by Load alone, before there are clients
	serial atomic.Uint64
	bytes  atomic.Int64 // of all clients

	hits, joined, forgotten, tooLong, evicted, evictedYoung atomic.Uint64

	mu      sync.Mutex
	clients map[string]*client // by oncrpc.ClientOf
	shares  map[string]*share  // by oncrpc.ShareOf
	left    int                // how many clients have left
	swept   time.Time          // when all were last looked at
}

var _ oncrpc.Replies = (*Cache)(nil)

// share are the clients that make room together where something is divided.
type share struct {
	name    string
	members map[*client]struct{} // guarded by Cache.mu
	left    int                  // guarded by Cache.mu: of them, those that have left
	size    atomic.Int64         // bytes of their replies
}

// New returns an empty cache.
func New(o Options) *Cache {
	if o.PerClient <= 0 {
		o.PerClient = DefaultPerClient
	}
	o.MaxAge = cmp.Or(o.MaxAge, DefaultMaxAge)
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Cache{o: o, clients: make(map[string]*client), shares: make(map[string]*share)}
	var seed [hashKeyBytes]byte
	_, _ = rand.Read(seed[:]) // never fails (crypto/rand)
	r.key.decode(seed[:])
	return r
}

// Stats returns the cache's counters.
func (r *Cache) Stats() oncrpc.ReplyCacheStats {
	st := oncrpc.ReplyCacheStats{
		Bytes: r.bytes.Load(), Hits: r.hits.Load(), Joined: r.joined.Load(),
		Forgotten: r.forgotten.Load(), TooLong: r.tooLong.Load(),
		Evicted: r.evicted.Load(), EvictedYoung: r.evictedYoung.Load(),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	st.Clients = len(r.clients)
	for _, m := range r.clients {
		if m.users > 0 {
			st.Connected++
		}
		m.mu.Lock()
		st.Replies += m.replies
		st.UnderWay += len(m.calls) - m.replies
		st.Waiting += len(m.joins)
		m.mu.Unlock()
	}
	return st
}

// Serial returns a number that rises with each call, over all servers that share the
// cache.
func (r *Cache) Serial() uint64 { return r.serial.Add(1) }

// Client returns what is known of the client at remote. A client without replies is
// forgotten when the last that uses it has called Release.
func (r *Cache) Client(remote net.Addr) oncrpc.ClientReplies { return r.client(remote) }

func (r *Cache) client(remote net.Addr) *client {
	name, now := oncrpc.ClientOf(remote), r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	m := r.clients[name]
	if m == nil {
		m = r.enter(name, oncrpc.ShareOf(remote))
	} else if m.users == 0 {
		r.left--
		m.share.left--
	}
	m.users++
	return m
}

// enter makes a client, which is connected. r.mu is held.
func (r *Cache) enter(name, shareName string) *client {
	s := r.shares[shareName]
	if s == nil {
		s = &share{name: shareName, members: make(map[*client]struct{})}
		r.shares[shareName] = s
	}
	m := newClient(r, name, s)
	s.members[m] = struct{}{}
	r.clients[name] = m
	return m
}

// release ends one use of m.
func (r *Cache) release(m *client) {
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.users--; m.users == 0 {
		r.leave(m, now)
	}
}

// leave notes that m has left. It forgets m if m has no replies, or another client if
// too many have left. r.mu is held.
func (r *Cache) leave(m *client, now time.Time) {
	m.left = now
	m.share.left++
	if r.left++; m.size.Load() == 0 {
		r.forget(m)
	} else if r.left > maxClients {
		r.forgetOne(now)
	}
}

// forget forgets a client that has left and has no replies. r.mu is held.
func (r *Cache) forget(m *client) {
	delete(r.clients, m.name)
	r.left--
	m.share.left--
	if delete(m.share.members, m); len(m.share.members) == 0 {
		delete(r.shares, m.share.name)
	}
}

// forgetOne forgets, of the share of which most clients have left, the one that left
// longest ago. r.mu is held.
func (r *Cache) forgetOne(now time.Time) {
	most := 0
	for _, s := range r.shares {
		most = max(most, s.left)
	}
	var oldest *client
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
func (r *Cache) sweep(now time.Time) {
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

// trim makes room when all replies together take too much. In the share that holds
// most, each client gives back its oldest replies, half of what it has at a time: a
// client that writes without end, from however many addresses, costs others nothing.
func (r *Cache) trim() {
	if r.bytes.Load() <= r.o.MaxBytes {
		return
	}
	now := r.o.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for target := r.o.MaxBytes - r.o.MaxBytes/trimPart; r.bytes.Load() > target; {
		most := r.largest()
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

// largest is the share that holds most; nil: there is none. r.mu is held.
func (r *Cache) largest() (most *share) {
	for _, s := range r.shares {
		if most == nil || s.size.Load() > most.size.Load() {
			most = s
		}
	}
	return most
}
