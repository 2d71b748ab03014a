package nlm

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// from is a call of a client whose address ends in n.
func from(n int) *oncrpc.Call {
	return &oncrpc.Call{Remote: &net.TCPAddr{IP: net.IPv4(10, 0, byte(n>>8), byte(n)), Port: 700},
		Local: &net.UDPAddr{IP: net.IPv6unspecified, Port: 2049}}
}

func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLab(t, Options{}).svc
		var all []*client
		enter := func(n int, name string) error {
			c, err := s.enter(from(n), name)
			if err == nil {
				all = append(all, c)
			}
			return err
		}
		for n := range maxNames {
			if err := enter(0, fmt.Sprint(n)); err != nil {
				t.Fatal(err)
			}
		}
		if enter(0, "one more") == nil {
			t.Error("an address has any number of names")
		}
		for n := range maxClients - maxNames {
			if err := enter(1+n, "a"); err != nil {
				t.Fatal(err)
			}
		}
		if enter(maxClients, "b") == nil {
			t.Error("there are any number of clients")
		}
		if enter(1, "a") != nil {
			t.Error("one that is known is turned away")
		}
		if err := s.watch(all[0]); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			s.leave(c)
		}
		for n := range maxClients {
			if c, err := s.enter(from(1+n), "b"); err != nil {
				t.Fatal("one that holds nothing does not make room")
			} else {
				s.leave(c)
			}
		}
		if n := s.nsm.Watched(); n > 1 || len(s.clients) > maxClients {
			t.Errorf("%d clients are watched, %d known", n, len(s.clients))
		}
	})
}

func TestLongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		expect(t, "first", a.lock(want{fh: fh, svid: -1, exclusive: true}), nlm4.NLM4_GRANTED)
		wait := func(n int) nlm4.Nlm4Stats {
			return a.lock(want{fh: fh, svid: int32(n), exclusive: true, block: true})
		}
		for n := range maxQueue / 2 {
			expect(t, "waiting", wait(n), nlm4.NLM4_BLOCKED)
		}
		expect(t, "one too many", wait(maxQueue), nlm4.NLM4_DENIED_NOLOCKS)
		expect(t, "one that waits already", wait(5), nlm4.NLM4_BLOCKED)
		a.notify("nobody")
		a.state = 3
		a.notify("a")
		if st := l.svc.Stats(); st.Queued != 0 || st.Locks != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestManyLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		expect(t, "lock", a.lock(want{fh: fh, svid: 1, len: 1}), nlm4.NLM4_GRANTED)
		l.svc.mu.Lock()
		l.svc.locks += maxLocks
		l.svc.mu.Unlock()
		expect(t, "one too many", a.lock(want{fh: fh, svid: 1, off: 5, len: 1}), nlm4.NLM4_DENIED_NOLOCKS)
		expect(t, "one that is held", a.lock(want{fh: fh, svid: 1, len: 1}), nlm4.NLM4_GRANTED)
		l.svc.mu.Lock()
		l.svc.locks -= maxLocks
		l.svc.mu.Unlock()
		expect(t, "room again", a.lock(want{fh: fh, svid: 1, off: 5, len: 1}), nlm4.NLM4_GRANTED)
	})
}

// TestLateDuplicate has a LOCK arrive once more behind its UNLOCK.
func TestLateDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		w := want{fh: fh, svid: 1, exclusive: true}
		again := func(xid uint32, do func() nlm4.Nlm4Stats) nlm4.Nlm4Stats {
			before := a.client
			defer func() { a.client = before }()
			a.client = oncrpc.NewClient(oncrpc.ClientOptions{FirstXID: xid, Dial: func(ctx context.Context) (net.Conn, error) {
				return l.wire.dial(ctx, "tcp", a.ip, serverAddr)
			}})
			st := do()
			if err := a.client.Close(); err != nil {
				t.Error(err)
			}
			return st
		}
		lock, unlock := func() nlm4.Nlm4Stats { return a.lock(w) }, func() nlm4.Nlm4Stats { return a.unlock(w) }
		expect(t, "lock", again(100, lock), nlm4.NLM4_GRANTED)
		expect(t, "unlock", again(200, unlock), nlm4.NLM4_GRANTED)
		expect(t, "the lock's duplicate", again(100, lock), nlm4.NLM4_GRANTED)
		if st := l.svc.Stats(); st.Locks != 0 {
			t.Errorf("the duplicate was executed: %+v", st)
		}
		expect(t, "lock", again(300, lock), nlm4.NLM4_GRANTED)
		expect(t, "the unlock's duplicate", again(200, unlock), nlm4.NLM4_GRANTED)
		if st := l.svc.Stats(); st.Locks != 1 {
			t.Errorf("the duplicate was executed: %+v", st)
		}
	})
}

func TestOwners(t *testing.T) {
	c := &client{id: ownerPrefix + "192.0.2.11 a"}
	seen := make(map[any]bool)
	for _, oh := range [][]byte{nil, {0}, {0, 0}, bytes.Repeat([]byte{1}, 60), bytes.Repeat([]byte{1}, 61), bytes.Repeat([]byte{1}, 1024)} {
		for _, svid := range []int32{0, 1, -1} {
			o := ownerOf(c, oh, svid)
			if seen[o] {
				t.Errorf("%d bytes and %d: not the only one", len(oh), svid)
			}
			seen[o] = true
			gotOH, gotSvid := holder(&o)
			if gotSvid != svid || len(oh) <= 60 && !bytes.Equal(gotOH, oh) {
				t.Errorf("%x, %d came back as %x, %d", oh, svid, gotOH, gotSvid)
			}
		}
	}
	if got := callback.From(from(1).Remote).Addr(); got != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("%v", got)
	}
}
