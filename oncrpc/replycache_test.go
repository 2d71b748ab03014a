package oncrpc

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// nowhere is a route on which nothing arrives.
type nowhere struct{ ctx context.Context }

func (n *nowhere) context() context.Context { return n.ctx }
func (n *nowhere) enqueue(a answered)       { a.drop() }
func (n *nowhere) flush()                   {}
func (n *nowhere) gone() bool               { return false }

// cacheRig is a cache whose clock the test moves.
type cacheRig struct {
	*ReplyCache
	t    testing.TB
	now  time.Time
	pool bufpool.Pool
}

func newCacheRig(t testing.TB, o ReplyCacheOptions) *cacheRig {
	r := &cacheRig{t: t, now: time.Unix(1e9, 0)}
	o.Now = func() time.Time { return r.now }
	r.ReplyCache = NewReplyCache(o)
	t.Cleanup(func() {
		if n := r.pool.Outstanding(); n != 0 {
			t.Errorf("%d buffers lost", n)
		}
		r.balance()
	})
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
func (r *cacheRig) answer(m *replyClient, xid int, reply []byte) {
	r.t.Helper()
	v, e, _, _ := m.claim(callNumber(xid), asker{to: &nowhere{}}, &r.pool, nil)
	if v != execute {
		r.t.Fatalf("call %d: verdict %d", xid, v)
	}
	if to := m.settle(e, reply); to != nil {
		r.t.Fatalf("call %d: somebody has joined", xid)
	}
	r.trim()
}

// knows reports whether a call is remembered.
func (r *cacheRig) knows(m *replyClient, xid int) bool {
	v, e, b, _ := m.claim(callNumber(xid), asker{to: &nowhere{}}, &r.pool, nil)
	if v == execute {
		m.settle(e)
		return false
	}
	b.Release()
	return true
}

// known is the first and the last of a client's calls 0 to n that are known.
func (r *cacheRig) known(m *replyClient, n int) string {
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
	const each = replyOverhead + 100
	for _, c := range []struct {
		name  string
		o     ReplyCacheOptions
		calls int           // a second apart
		pause time.Duration // then
		more  int           // then
		want  string
		young uint64
	}{
		{"few", ReplyCacheOptions{PerClient: 10, Keep: time.Second}, 10, 0, 0, "0 to 9", 0},
		{"few and old", ReplyCacheOptions{PerClient: 10, Keep: time.Second, MaxAge: 3 * time.Hour}, 9, time.Hour, 1, "0 to 9", 0},
		{"many and young", ReplyCacheOptions{PerClient: 10, Keep: time.Hour}, 100, 0, 0, "0 to 99", 0},
		{"many and old", ReplyCacheOptions{PerClient: 10, Keep: 20 * time.Second}, 100, 0, 0, "79 to 99", 0},
		{"few and too old", ReplyCacheOptions{PerClient: 10, Keep: time.Second}, 9, 110 * time.Second, 3, "2 to 11", 0},
		{"many, then a pause", ReplyCacheOptions{PerClient: 10, Keep: time.Hour, MaxAge: 3 * time.Hour}, 100, 2 * time.Hour, 1, "4 to 100", 0},
		{"and all are gone", ReplyCacheOptions{PerClient: 10, Keep: time.Hour, MaxAge: 3 * time.Hour}, 100, 2 * time.Hour, 23, "92 to 122", 0},
		{"too much", ReplyCacheOptions{PerClient: 10, Keep: time.Hour, MaxBytes: 50 * each}, 51, 0, 0, "2 to 50", 2},
		{"too much of a few", ReplyCacheOptions{PerClient: 1000, Keep: time.Second, MaxBytes: 50 * each}, 51, time.Hour, 0, "2 to 50", 2},
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
	r := newCacheRig(t, ReplyCacheOptions{MaxBytes: 100 * (replyOverhead + 100)})
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
	r := newCacheRig(t, ReplyCacheOptions{PerClient: 2, Keep: 1, MaxBytes: 3 * replyOverhead})
	m := r.client(addr("192.0.2.1", 1))
	first, second, third := &nowhere{}, &nowhere{}, &nowhere{}
	_, e, _, _ := m.claim(callNumber(0), asker{first, 5}, &r.pool, nil)
	for i := range 100 {
		r.now = r.now.Add(time.Second)
		r.answer(m, i+1, []byte("x"))
	}
	for _, c := range []struct {
		a      asker
		want   verdict
		before route
	}{
		{asker{first, 4}, outrun, nil},
		{asker{second, 5}, joined, nil},
		{asker{third, 9}, joined, second},
		{asker{second, 8}, outrun, nil},
	} {
		if v, _, _, before := m.claim(callNumber(0), c.a, &r.pool, nil); v != c.want || before != c.before {
			t.Errorf("serial %d: verdict %d, want %d; instead of %v", c.a.serial, v, c.want, before)
		}
	}
	if st := r.Stats(); st.UnderWay != 1 {
		t.Errorf("%+v", st)
	}
	if to := m.settle(e, []byte("y")); to != third {
		t.Errorf("the reply goes to %v", to)
	}
	v, _, b, _ := m.claim(callNumber(0), asker{first, 1}, &r.pool, nil)
	if v != replay || !bytes.Equal(b.B, record([]byte("y"))) {
		t.Errorf("verdict %d, %q", v, b.B)
	}
	b.Release()
}

// TestReplyCacheFreesFirst: a call that joins another has given its buffer back when that
// can be answered, and the server be closed.
func TestReplyCacheFreesFirst(t *testing.T) {
	r := newCacheRig(t, ReplyCacheOptions{})
	m := r.client(addr("192.0.2.1", 1))
	to := &nowhere{}
	_, e, _, _ := m.claim(callNumber(0), asker{to, 1}, &r.pool, nil)
	lent := r.pool.Outstanding()
	c := &Call{s: new(Server), meter: new(meter), rec: r.pool.Get(100)}
	if v, _, _, _ := m.claim(callNumber(0), asker{to, 2}, &r.pool, c); v != joined || r.pool.Outstanding() != lent {
		t.Errorf("verdict %d, and %d buffers, want %d", v, r.pool.Outstanding(), lent)
	}
	m.settle(e, []byte("y"))
}

// TestReplyCacheClients: those that have left longest ago are forgotten, those
// that are there are not; and one that leaves without a reply leaves nothing.
func TestReplyCacheClients(t *testing.T) {
	r := newCacheRig(t, ReplyCacheOptions{})
	stays := r.client(addr("192.0.2.1", 1))
	r.answer(stays, 1, nil)
	at := func(i int) net.Addr { return addr(fmt.Sprintf("198.51.%d.%d", i/250, i%250), i) }
	for i := range maxReplyClients + 10 {
		m := r.client(at(i))
		r.answer(m, 1, nil)
		r.now = r.now.Add(time.Millisecond)
		r.release(m)
	}
	if st := r.Stats(); st.Clients != maxReplyClients+1 || st.EvictedYoung != 10 || !r.knows(stays, 1) {
		t.Errorf("%+v", st)
	}
	for _, i := range []int{maxReplyClients + 9, 10, 9} { // to ask for one that is not known makes it known
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

// TestClientName looks at what makes the same client.
func TestClientName(t *testing.T) {
	long := make([]byte, 1000)
	for _, c := range []struct {
		a    net.Addr
		want string
	}{
		{nil, ""},
		{addr("192.0.2.1", 700), "192.0.2.1"},
		{&net.UDPAddr{IP: net.ParseIP("192.0.2.1").To4(), Port: 3}, "192.0.2.1"},
		{addr("::ffff:192.0.2.1", 3), "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, "fe80::1%eth0"},
		{pipeAddr{}, "pipe"},
		{&net.UnixAddr{Net: "unix", Name: "/run/x"}, "/run/x"},
		{&net.UnixAddr{Net: "unix", Name: string(long)}, string(long[:maxClientName])},
		{textAddr("[2001:db8::1]:77"), "2001:db8::1"},
	} {
		if got := clientName(c.a); got != c.want {
			t.Errorf("%v is %q, want %q", c.a, got, c.want)
		}
	}
}

type textAddr string

func (textAddr) Network() string  { return "text" }
func (a textAddr) String() string { return string(a) }

// TestReplyCacheAllocs: a remembered call costs one allocation at most, and none
// where replies come and go.
func TestReplyCacheAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range []struct {
		name string
		o    ReplyCacheOptions
		most float64
	}{
		{"growing", ReplyCacheOptions{}, 1},
		{"in balance", ReplyCacheOptions{PerClient: 100, Keep: 1}, 0},
	} {
		r := newCacheRig(t, c.o)
		m := r.client(addr("192.0.2.1", 1))
		to, cred, reply := &nowhere{}, make([]byte, 37), make([]byte, 160)
		i := 0
		n := testing.AllocsPerRun(4000, func() {
			i++
			r.now = r.now.Add(time.Second)
			k := callNumber(i)
			k.hash = r.key.call(Auth{Flavor: AuthSysFlavor, Body: cred}, reply)
			_, e, _, _ := m.claim(k, asker{to, 1}, &r.pool, nil)
			m.settle(e, reply)
			r.trim()
		})
		if n > c.most {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// TestReplyCacheConcurrent has many clients and many askers for few calls. Each
// call is executed once, and each asker who gets a reply gets the right one.
func TestReplyCacheConcurrent(t *testing.T) {
	r := newCacheRig(t, ReplyCacheOptions{MaxBytes: 1 << 20})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				m := r.client(addr("192.0.2.1", g))
				other := r.client(addr(fmt.Sprintf("192.0.2.%d", g+2), 1))
				for k, m := range []*replyClient{m, other} {
					want := fmt.Appendf(nil, "%d of %d", i, k)
					v, e, b, _ := m.claim(callNumber(i), asker{&nowhere{}, uint64(i)}, &r.pool, nil)
					switch v {
					case execute:
						m.settle(e, want[:2], want[2:])
						r.trim()
					case replay:
						if !bytes.Equal(b.B[markBytes:], want) {
							t.Errorf("%q for %q", b.B[markBytes:], want)
						}
						b.Release()
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
			r := NewReplyCache(ReplyCacheOptions{})
			m := r.client(addr("192.0.2.1", 1))
			to, args, reply := &nowhere{}, make([]byte, size), make([]byte, 160)
			var pool bufpool.Pool
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				k := callKey{1, 2, 3, uint32(i), r.key.call(Auth{}, args)}
				_, e, _, _ := m.claim(k, asker{to, 1}, &pool, nil)
				m.settle(e, reply)
				r.trim()
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
	if testing.Short() || raceEnabled {
		t.Skip("it measures memory")
	}
	for _, c := range []struct {
		clients, calls, size int
	}{{1, 40_000, 160}, {40, 12_000, 160}, {100, 100, maxRememberedReply}} {
		t.Run(fmt.Sprintf("%d clients, %d bytes", c.clients, c.size), func(t *testing.T) {
			const limit, perClient = 4 << 20, 10 << 10
			before := heapNow()
			r := NewReplyCache(ReplyCacheOptions{MaxBytes: limit})
			to, reply := &nowhere{}, make([]byte, c.size)
			var pool bufpool.Pool // of nothing: no reply is asked for twice
			for i := range c.clients {
				m := r.client(addr(fmt.Sprintf("192.0.2.%d", i), 1))
				for j := range c.calls {
					_, e, _, _ := m.claim(callKey{1, 2, 3, uint32(j), 4}, asker{to, 1}, &pool, nil)
					m.settle(e, reply)
					r.trim()
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
	r := newCacheRig(t, ReplyCacheOptions{})
	m := r.client(addr("192.0.2.1", 1))
	r.answer(m, 1, []byte("x"))
	r.now = r.now.Add(DefaultReplyAge)
	if !r.knows(m, 1) {
		t.Error("a reply of two minutes is not known")
	}
	r.now = r.now.Add(time.Second)
	if r.knows(m, 1) {
		t.Error("a reply of more than two minutes is sent again")
	}
	r.answer(m, 1, []byte("y"))
	r.release(m)
	r.now = r.now.Add(2 * DefaultReplyAge)
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
	const each = replyOverhead + 100
	r := newCacheRig(t, ReplyCacheOptions{MaxBytes: 6000 * each})
	m := r.client(addr("192.0.2.1", 1))
	for i := range 100 {
		r.answer(m, i, make([]byte, 100))
	}
	r.release(m)
	for i := range 3 * maxReplyClients {
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
