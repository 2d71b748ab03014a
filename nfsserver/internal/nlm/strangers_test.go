package nlm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/xdr"
)

// admit has the lab's export admit these clients alone.
func (l *lab) admit(rules ...string) {
	l.t.Helper()
	e := l.table.Exports()[0]
	e.Clients = nil
	for _, m := range rules {
		e.Clients = append(e.Clients, export.Rule{Match: m})
	}
	if err := l.table.Replace(e); err != nil {
		l.t.Fatal(err)
	}
}

// TestStrangers has addresses that no rule admits ask for locks in all ways, under
// many names: nothing is kept of them, and nothing sent to them. What a client has it
// may give up although it is a stranger by now.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		honest := l.guest("honest", "192.0.2.11")
		expect(t, "a lock of before", honest.lock(want{fh: fh, svid: 9, len: 1}), nlm4.NLM4_GRANTED)
		l.admit("192.0.2.12")
		for n := range 5 {
			g := l.guest("stranger", fmt.Sprint("192.0.2.", 100+n))
			for i := range 50 {
				w := want{fh: fh, svid: int32(i)}
				if i%2 == 0 {
					w.fh = []byte("no handle of ours")
				}
				g.name = fmt.Sprint("stranger", i)
				for _, p := range []*xdr.Proc{nlm4.NLMPROC4_TEST_MSG, nlm4.NLMPROC4_GRANTED_MSG} {
					g.call(p, &nlm4.Nlm4Testargs{Alock: g.alock(w)}, &xdr.Void{})
				}
				g.call(nlm4.NLMPROC4_LOCK_MSG, g.lockArgs(w), &xdr.Void{})
				if st := g.lock(w); st == nlm4.NLM4_GRANTED || st == nlm4.NLM4_BLOCKED {
					t.Errorf("a stranger's lock: %v", st)
				}
			}
			if len(g.grants)+len(g.results) != 0 {
				t.Error("something was sent to a stranger")
			}
		}
		l.svc.mu.Lock()
		if len(l.svc.clients) != 1 || len(l.svc.homes) != 1 || l.svc.results != 0 {
			t.Errorf("%d clients of %d homes are known, %d answers wait", len(l.svc.clients), len(l.svc.homes), l.svc.results)
		}
		l.svc.mu.Unlock()
		expect(t, "its unlock", honest.unlock(want{fh: fh, svid: 9, len: 1}), nlm4.NLM4_GRANTED)
		if st := l.svc.Stats(); st.Locks != 0 {
			t.Errorf("%d locks are left", st.Locks)
		}
		other := l.guest("other", "192.0.2.12")
		expect(t, "one who is admitted", other.lock(want{fh: fh, svid: 1, exclusive: true}), nlm4.NLM4_GRANTED)
	})
}

// TestCalling has many clients that do not answer: only so many are called at once,
// and of one address fewer, under whatever names.
func TestCalling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		s := l.svc
		var mu sync.Mutex
		now, most, ofOne := 0, 0, 0
		one := netip.MustParseAddr("10.0.0.1")
		s.call.Dial = func(ctx context.Context, _ string, _ netip.Addr, to string) (net.Conn, error) {
			at, err := netip.ParseAddrPort(to)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			if now++; at.Addr() == one {
				ofOne++
			}
			most = max(most, now)
			if ofOne > maxClientCalling {
				t.Errorf("%d calls to one address", ofOne)
			}
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			if now--; at.Addr() == one {
				ofOne--
			}
			return nil, syscall.ECONNREFUSED
		}
		send := func(n int, name string) {
			c, err := s.enter(from(n), name)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				s.sendResult(c, nlm4.NLMPROC4_TEST_RES, &nlm4.Nlm4Testres{})
			}
			s.leave(c)
		}
		for i := range 50 {
			send(1, fmt.Sprint(i))
		}
		synctest.Wait()
		mu.Lock()
		if now != maxClientCalling {
			t.Errorf("%d calls to one address under way, want %d", now, maxClientCalling)
		}
		mu.Unlock()
		for n := range 200 {
			send(2+n, "a")
		}
		synctest.Wait()
		if most != maxCalling {
			t.Errorf("%d calls were under way at once, want %d", most, maxCalling)
		}
	})
}

// TestHoldings bounds the owners of one client, whatever it calls itself, and nobody
// else's.
func TestHoldings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{MaxHoldings: 3})
		fh := l.file("f", 0o666)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		for i := range int32(3) {
			expect(t, "lock", a.lock(want{fh: fh, svid: i, off: uint64(i), len: 1}), nlm4.NLM4_GRANTED)
		}
		a.name = "another name"
		expect(t, "one owner too many", a.lock(want{fh: fh, svid: 3, off: 3, len: 1}), nlm4.NLM4_DENIED_NOLOCKS)
		a.name = "a"
		expect(t, "another range of an owner", a.lock(want{fh: fh, svid: 0, off: 10, len: 1}), nlm4.NLM4_GRANTED)
		expect(t, "another client", b.lock(want{fh: fh, svid: 0, off: 20, len: 1}), nlm4.NLM4_GRANTED)
		expect(t, "unlock", a.unlock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
		expect(t, "room again", a.lock(want{fh: fh, svid: 3, off: 3, len: 1}), nlm4.NLM4_GRANTED)
	})
}

// TestHomes has one share for all addresses of an IPv6 network of 64 bits.
func TestHomes(t *testing.T) {
	s := newLabOf(t, memfs.New(memfs.Options{}), Options{}).svc
	for i := range 10 {
		addr := &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("2001:db8::%d", i+1)), Port: 700}
		c, err := s.enter(&oncrpc.Call{Remote: addr, Local: addr}, "a")
		if err != nil {
			t.Fatal(err)
		}
		s.leave(c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.homes) != 1 || s.homes["2001:db8::/64"].clients != 10 {
		t.Errorf("%d homes", len(s.homes))
	}
}
