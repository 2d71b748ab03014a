package replycache

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/oncrpc"
)

// nowhere is an asker that gets nothing.
type nowhere struct{ _ byte } // not empty: each has an address of its own

func (n *nowhere) Gone() bool  { return false }
func (n *nowhere) Unanswered() {}

// heard is a claimant.
type heard struct {
	reply  []byte
	passed int // how often the call was passed on
}

func (h *heard) Replay(message []byte) { h.reply = append([]byte{}, message...) }
func (h *heard) PassOn()               { h.passed++ }

// cacheRig is a cache whose clock the test moves.
type cacheRig struct {
	*Cache
	t   testing.TB
	now time.Time
}

func newCacheRig(t testing.TB, o Options) *cacheRig {
	r := &cacheRig{t: t, now: time.Unix(1e9, 0)}
	o.Now = func() time.Time { return r.now }
	r.Cache = New(o)
	t.Cleanup(r.balance)
	return r
}

// balance checks that what is counted is what is there.
func (r *cacheRig) balance() {
	r.t.Helper()
	var all int64
	for name, m := range r.clients {
		var size int64
		n := 0
		for e := m.oldest; e != nil; e = e.next {
			size += e.cost()
			n++
			if m.calls[e.key] != e {
				r.t.Errorf("%s: a reply is not to be found", name)
			}
		}
		if n != m.replies || size != m.size.Load() || n > len(m.calls) {
			r.t.Errorf("%s: %d replies of %d bytes, counted as %d of %d", name, n, size, m.replies, m.size.Load())
		}
		all += size
	}
	if all != r.bytes.Load() {
		r.t.Errorf("%d bytes, counted as %d", all, r.bytes.Load())
	}
}

func addr(ip string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }

func callNumber(xid int) callKey { return callKey{1, 2, 3, uint32(xid), 5} }

// answer has a call executed that must be new.
func (r *cacheRig) answer(m *client, xid int, reply []byte) {
	r.t.Helper()
	v, e, _ := m.claim(callNumber(xid), asker{to: &nowhere{}}, &heard{})
	if v != execute {
		r.t.Fatalf("call %d: verdict %d", xid, v)
	}
	if to := e.Remember(reply, nil, nil); to != nil {
		r.t.Fatalf("call %d: another asker has joined", xid)
	}
}

// knows reports whether a call is remembered.
func (r *cacheRig) knows(m *client, xid int) bool {
	v, e, _ := m.claim(callNumber(xid), asker{to: &nowhere{}}, &heard{})
	if v == execute {
		m.drop(e)
		return false
	}
	return true
}

// known is the first and the last of a client's calls 0 to n that are known.
func (r *cacheRig) known(m *client, n int) string {
	first, last := -1, -1
	for i := range n {
		if r.knows(m, i) {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return fmt.Sprint(first, " to ", last)
}

// TestReplyCacheEviction looks at what is forgotten, and when.
func TestReplyCacheEviction(t *testing.T) {
	const each = overhead + 100
	for _, c := range []struct {
		name  string
		o     Options
		calls int           // a second apart
		pause time.Duration // then
		more  int           // then
		want  string
		young uint64
	}{
		{"few", Options{PerClient: 10, Keep: time.Second}, 10, 0, 0, "0 to 9", 0},
		{"few and old", Options{PerClient: 10, Keep: time.Second, MaxAge: 3 * time.Hour}, 9, time.Hour, 1, "0 to 9", 0},
		{"many and young", Options{PerClient: 10, Keep: time.Hour}, 100, 0, 0, "0 to 99", 0},
		{"many and old", Options{PerClient: 10, Keep: 20 * time.Second}, 100, 0, 0, "79 to 99", 0},
		{"few and too old", Options{PerClient: 10, Keep: time.Second}, 9, 110 * time.Second, 3, "2 to 11", 0},
		{"many, then a pause", Options{PerClient: 10, Keep: time.Hour, MaxAge: 3 * time.Hour}, 100, 2 * time.Hour, 1, "4 to 100", 0},
		{"and all are gone", Options{PerClient: 10, Keep: time.Hour, MaxAge: 3 * time.Hour}, 100, 2 * time.Hour, 23, "92 to 122", 0},
		{"too much", Options{PerClient: 10, Keep: time.Hour, MaxBytes: 50 * each}, 51, 0, 0, "2 to 50", 2},
		{"too much of a few", Options{PerClient: 1000, Keep: time.Second, MaxBytes: 50 * each}, 51, time.Hour, 0, "2 to 50", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newCacheRig(t, c.o)
			m := r.client(addr("192.0.2.1", 1000))
			for i := range c.calls + c.more {
				if i == c.calls {
					r.now = r.now.Add(c.pause)
				}
				r.answer(m, i, make([]byte, 100))
				r.now = r.now.Add(time.Second)
			}
			if got := r.known(m, c.calls+c.more); got != c.want {
				t.Errorf("known are %s, want %s", got, c.want)
			}
			if st := r.Stats(); st.EvictedYoung != c.young || st.Bytes > r.o.MaxBytes {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestReplyCacheShares: a client that takes much makes room, and one that takes
// little keeps it.
func TestReplyCacheShares(t *testing.T) {
	r := newCacheRig(t, Options{MaxBytes: 100 * (overhead + 100)})
	small, large := r.client(addr("192.0.2.1", 1)), r.client(addr("192.0.2.2", 1))
	for i := range 20 {
		r.answer(small, i, make([]byte, 100))
	}
	for i := range 1000 {
		r.answer(large, i, make([]byte, 100))
	}
	if got := r.known(small, 20); got != "0 to 19" {
		t.Errorf("of the small client's 20 calls are known %s", got)
	}
	if !r.knows(large, 999) {
		t.Error("the large one's last is not known")
	}
	if st := r.Stats(); st.EvictedYoung == 0 || st.Bytes > r.o.MaxBytes {
		t.Errorf("%+v", st)
	}
}

// TestReplyCacheUnderWay: what is under way is not evicted, and joined whatever
// happens around it.
func TestReplyCacheUnderWay(t *testing.T) {
	r := newCacheRig(t, Options{PerClient: 2, Keep: 1, MaxBytes: 3 * overhead})
	m := r.client(addr("192.0.2.1", 1))
	first, second, third := &nowhere{}, &nowhere{}, &nowhere{}
	_, e, _ := m.claim(callNumber(0), asker{first, 5}, &heard{})
	for i := range 100 {
		r.now = r.now.Add(time.Second)
		r.answer(m, i+1, []byte("x"))
	}
	for _, c := range []struct {
		a      asker
		want   verdict
		before oncrpc.Asker
	}{
		{asker{first, 4}, outrun, nil},
		{asker{second, 5}, joined, nil},
		{asker{third, 9}, joined, second},
		{asker{second, 8}, outrun, nil},
	} {
		if v, _, before := m.claim(callNumber(0), c.a, &heard{}); v != c.want || before != c.before {
			t.Errorf("serial %d: verdict %d, want %d; instead of %v", c.a.serial, v, c.want, before)
		}
	}
	if st := r.Stats(); st.UnderWay != 1 || st.Waiting != 1 || st.Connected != 1 {
		t.Errorf("%+v", st)
	}
	if to := e.Remember([]byte("y"), nil, nil); to != third {
		t.Errorf("the reply goes to %v", to)
	}
	h := &heard{}
	if v, _, _ := m.claim(callNumber(0), asker{first, 1}, h); v != replay || !bytes.Equal(h.reply, []byte("y")) {
		t.Errorf("verdict %d, %q", v, h.reply)
	}
}

// TestReplyCacheFreesFirst: a call that joins another is passed on when that can be
// answered, and the server be closed. One that is replayed is not.
func TestReplyCacheFreesFirst(t *testing.T) {
	r := newCacheRig(t, Options{})
	m := r.client(addr("192.0.2.1", 1))
	to := &nowhere{}
	_, e, _ := m.claim(callNumber(0), asker{to, 1}, &heard{})
	c := &unlocked{m: m}
	if v, _, _ := m.claim(callNumber(0), asker{to, 2}, c); v != joined || c.passed != 1 || c.free {
		t.Errorf("verdict %d, passed on %d times; another could have been answered: %v", v, c.passed, c.free)
	}
	e.Remember([]byte("y"), nil, nil)
	h := &heard{}
	if v, _, _ := m.claim(callNumber(0), asker{to, 3}, h); v != replay || h.passed != 0 {
		t.Errorf("verdict %d, passed on %d times", v, h.passed)
	}
}

// unlocked is a claimant that looks whether the call it joins can be settled before it
// is passed on.
type unlocked struct {
	heard
	m    *client
	free bool
}

func (u *unlocked) PassOn() {
	u.heard.PassOn()
	if u.free = u.m.mu.TryLock(); u.free {
		u.m.mu.Unlock()
	}
}

// TestReplyCacheClients: those that have left longest ago are forgotten, those
// that are there are not; and one that leaves without a reply leaves nothing.
func TestReplyCacheClients(t *testing.T) {
	r := newCacheRig(t, Options{})
	stays := r.client(addr("192.0.2.1", 1))
	r.answer(stays, 1, nil)
	at := func(i int) net.Addr { return addr(fmt.Sprintf("198.51.%d.%d", i/250, i%250), i) }
	for i := range maxClients + 10 {
		m := r.client(at(i))
		r.answer(m, 1, nil)
		r.now = r.now.Add(time.Millisecond)
		r.release(m)
	}
	if st := r.Stats(); st.Clients != maxClients+1 || st.EvictedYoung != 10 || !r.knows(stays, 1) {
		t.Errorf("%+v", st)
	}
	for _, i := range []int{maxClients + 9, 10, 9} { // to ask for one that is not known makes it known
		m := r.client(at(i))
		if want := i > 9; r.knows(m, 1) != want {
			t.Errorf("client %d is known: %v", i, !want)
		}
		r.release(m)
	}
	before := r.Stats().Clients
	m := r.client(addr("2001:db8::1", 1))
	if other := r.client(addr("2001:db8::1", 2)); other != m {
		t.Error("the port makes another client")
	}
	r.release(m)
	r.release(m)
	if n := r.Stats().Clients; n > before {
		t.Errorf("a client without replies is kept: %d, %d before", n, before)
	}
}

// TestReplyCacheAllocs: a remembered call costs one allocation at most, and none
// where replies come and go.
func TestReplyCacheAllocs(t *testing.T) {
	need.Speed(t, "it allocates")
	for _, c := range []struct {
		name string
		o    Options
		most float64
	}{
		{"growing", Options{}, 1},
		{"in balance", Options{PerClient: 100, Keep: 1}, 0},
	} {
		r := newCacheRig(t, c.o)
		m := r.client(addr("192.0.2.1", 1))
		to, asks, cred, reply := &nowhere{}, &heard{}, make([]byte, 37), make([]byte, 160)
		i := 0
		n := testing.AllocsPerRun(4000, func() {
			i++
			r.now = r.now.Add(time.Second)
			k := callNumber(i)
			k.hash = r.key.call(oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: cred}, reply)
			_, e, _ := m.claim(k, asker{to, 1}, asks)
			e.Remember(reply, nil, nil)
		})
		if n > c.most {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// TestReplyCacheConcurrent has many clients and many askers for few calls. Each
// call is executed once, and each asker that gets a reply gets the right one.
func TestReplyCacheConcurrent(t *testing.T) {
	r := newCacheRig(t, Options{MaxBytes: 1 << 20})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				m := r.client(addr("192.0.2.1", g))
				other := r.client(addr(fmt.Sprintf("192.0.2.%d", g+2), 1))
				for k, m := range []*client{m, other} {
					want := fmt.Appendf(nil, "%d of %d", i, k)
					h := &heard{}
					v, e, _ := m.claim(callNumber(i), asker{&nowhere{}, uint64(i)}, h)
					switch v {
					case execute:
						e.Remember(want[:2], want[2:4], want[4:])
					case replay:
						if !bytes.Equal(h.reply, want) {
							t.Errorf("%q for %q", h.reply, want)
						}
					}
				}
				r.release(other)
				r.release(m)
			}
		})
	}
	wg.Wait()
	if st := r.Stats(); st.UnderWay != 0 || st.Bytes > r.o.MaxBytes {
		t.Errorf("%+v", st)
	}
}

func BenchmarkReplyCache(b *testing.B) {
	for _, size := range []int{100, 4096, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := New(Options{})
			m := r.client(addr("192.0.2.1", 1))
			to, c, args, reply := &nowhere{}, &heard{}, make([]byte, size), make([]byte, 160)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				k := callKey{1, 2, 3, uint32(i), r.key.call(oncrpc.Auth{}, args)}
				_, e, _ := m.claim(k, asker{to, 1}, c)
				e.Remember(reply, nil, nil)
			}
		})
	}
}

// heapNow is the memory in use, and not in pools.
func heapNow() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what was in pools goes with the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestReplyMemory has clients that write much, one after another: what is
// counted is what is there, and what was forgotten is given back.
func TestReplyMemory(t *testing.T) {
	if testing.Short() || need.Race {
		t.Skip("it measures memory")
	}
	for _, c := range []struct {
		clients, calls, size int
	}{{1, 40_000, 160}, {40, 12_000, 160}, {100, 100, maxReply}} {
		t.Run(fmt.Sprintf("%d clients, %d bytes", c.clients, c.size), func(t *testing.T) {
			const limit, perClient = 4 << 20, 10 << 10
			before := heapNow()
			r := New(Options{MaxBytes: limit})
			to, reply := &nowhere{}, make([]byte, c.size)
			none := &heard{} // no reply is asked for twice
			for i := range c.clients {
				m := r.client(addr(fmt.Sprintf("192.0.2.%d", i), 1))
				for j := range c.calls {
					_, e, _ := m.claim(callKey{1, 2, 3, uint32(j), 4}, asker{to, 1}, none)
					e.Remember(reply, nil, nil)
				}
				r.release(m)
			}
			took := heapNow() - before
			st := r.Stats()
			if took > limit*5/4+int64(c.clients)*perClient || st.Bytes > limit {
				t.Errorf("%d bytes are counted, and %d are in use, of at most %d", st.Bytes, took, limit)
			}
		})
	}
}

// TestReplyCacheAge: what is too old is not sent again, and a sweep forgets it.
func TestReplyCacheAge(t *testing.T) {
	r := newCacheRig(t, Options{})
	m := r.client(addr("192.0.2.1", 1))
	r.answer(m, 1, []byte("x"))
	r.now = r.now.Add(DefaultMaxAge)
	if !r.knows(m, 1) {
		t.Error("a reply of two minutes is not known")
	}
	r.now = r.now.Add(time.Second)
	if r.knows(m, 1) {
		t.Error("a reply of more than two minutes is sent again")
	}
	r.answer(m, 1, []byte("y"))
	r.release(m)
	r.now = r.now.Add(2 * DefaultMaxAge)
	r.release(r.client(addr("192.0.2.2", 1)))
	if st := r.Stats(); st.Clients != 0 || st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
	r.now = r.now.Add(-time.Hour)
	m = r.client(addr("192.0.2.1", 1))
	r.answer(m, 2, []byte("z"))
	r.now = r.now.Add(-time.Hour)
	if r.knows(m, 2) {
		t.Error("the clock was put back by an hour, and a reply may be two hours old")
	}
}

// TestReplyCacheNetworks has one IPv6 network of 64 bits come under thousands of
// addresses: it makes room by itself.
func TestReplyCacheNetworks(t *testing.T) {
	const each = overhead + 100
	r := newCacheRig(t, Options{MaxBytes: 6000 * each})
	m := r.client(addr("192.0.2.1", 1))
	for i := range 100 {
		r.answer(m, i, make([]byte, 100))
	}
	r.release(m)
	for i := range 3 * maxClients {
		r.now = r.now.Add(time.Microsecond)
		m := r.client(addr(fmt.Sprintf("2001:db8::%x", i+1), 1))
		r.answer(m, 1, make([]byte, 100))
		if i%2 == 0 {
			r.release(m)
		}
	}
	if st := r.Stats(); st.Bytes > r.o.MaxBytes || st.EvictedYoung == 0 {
		t.Errorf("%+v", st)
	}
	if got := r.known(r.client(addr("192.0.2.1", 1)), 100); got != "0 to 99" {
		t.Errorf("of the other client's calls are known %s", got)
	}
}

// TestUsersFlood: a user that fills the cache, from all addresses of loopback, displaces
// no reply of another.
func TestUsersFlood(t *testing.T) {
	r := newCacheRig(t, Options{MaxBytes: 100 * (overhead + 100)})
	quiet := r.client(&oncrpc.UserAddr{Addr: addr("127.0.0.1", 1), UID: 1})
	for i := range 20 {
		r.answer(quiet, i, make([]byte, 100))
	}
	for i := range 1000 {
		m := r.client(&oncrpc.UserAddr{Addr: addr(fmt.Sprint("127.0.0.", 1+i%50), 1), UID: 2})
		r.answer(m, i, make([]byte, 100))
		r.release(m)
	}
	if got := r.known(quiet, 20); got != "0 to 19" {
		t.Errorf("of the quiet user's 20 calls are known %s", got)
	}
}
