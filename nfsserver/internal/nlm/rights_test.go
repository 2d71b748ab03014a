package nlm

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// TestWithoutRights has a caller that may not lock ask for locks: it is not
// monitored, and has no place in a queue in front of those who may.
func TestWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{StateDir: t.TempDir()})
		secret := l.file("s", 0o600)
		root, user := l.guest("root", "192.0.2.11"), l.guest("user", "192.0.2.12")
		user.uid = 1000
		expect(t, "held", root.lock(want{fh: secret, svid: 1, exclusive: true}), nlm4.NLM4_GRANTED)
		expect(t, "waits", root.lock(want{fh: secret, svid: 2, exclusive: true, block: true}), nlm4.NLM4_BLOCKED)
		expect(t, "without the right", user.lock(want{fh: secret, svid: 3, exclusive: true, block: true}), nlm4.NLM4_FAILED)
		if st := l.svc.Stats(); st.Queued != 1 || st.Watched != 1 {
			t.Errorf("%d wait, %d are monitored; want one, who may", st.Queued, st.Watched)
		}
	})
}

// TestAllTogether has the bounds of all clients together.
func TestAllTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		expect(t, "held", a.lock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
		full := func(n *int, most int, do func()) {
			t.Helper()
			change := func(by int) {
				l.svc.mu.Lock()
				defer l.svc.mu.Unlock()
				*n += by
			}
			change(most)
			do()
			change(-most)
		}
		full(&l.svc.waits, maxWaits, func() {
			w := want{fh: fh, svid: 2, exclusive: true, block: true}
			expect(t, "a lock that would wait", a.lock(w), nlm4.NLM4_DENIED_NOLOCKS)
		})
		full(&l.svc.locks, maxLocks, func() {
			expect(t, "an unlock that leaves two", a.unlock(want{fh: fh, svid: 1, off: 5, len: 1}), nlm4.NLM4_DENIED_NOLOCKS)
			expect(t, "one that leaves one", a.unlock(want{fh: fh, svid: 1, len: 5}), nlm4.NLM4_GRANTED)
		})
		full(&l.svc.shares, maxShares, func() {
			var res nlm4.Nlm4Shareres
			a.call(nlm4.NLMPROC4_SHARE, &nlm4.Nlm4Shareargs{Share: nlm4.Nlm4Share{CallerName: []byte("a"), Fh: fh}}, &res)
			expect(t, "a reservation", res.Stat, nlm4.NLM4_DENIED_NOLOCKS)
		})
		full(&l.svc.results, maxResults, func() {
			c, err := l.svc.enter(from(1), "b")
			if err != nil {
				t.Fatal(err)
			}
			defer l.svc.leave(c)
			l.svc.sendResult(c, nlm4.NLMPROC4_LOCK_RES, &nlm4.Nlm4Res{})
			l.svc.mu.Lock()
			defer l.svc.mu.Unlock()
			if !c.out.empty() {
				t.Error("an answer is kept that is one too many")
			}
		})
	})
}

// TestRoomOfAnAddress has an address with as many names as it may have call
// itself something else: what it costs is a name of its own.
func TestRoomOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLab(t, Options{}).svc
		enter := func(n int, name string) {
			t.Helper()
			c, err := s.enter(from(n), name)
			if err != nil {
				t.Fatal(err)
			}
			s.leave(c)
		}
		const others = 500
		for n := range others {
			enter(1+n, "a")
		}
		for n := range maxNames + 100 {
			enter(0, fmt.Sprint(n))
		}
		if len(s.clients) != maxNames+others {
			t.Errorf("%d clients are known, of %d and %d", len(s.clients), maxNames, others)
		}
	})
}
