package nlm

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/xdr"
)

func TestLockUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		ex := want{fh: fh, svid: 1, exclusive: true}
		expect(t, "first", a.lock(ex), nlm4.NLM4_GRANTED)
		expect(t, "the same again", a.lock(ex), nlm4.NLM4_GRANTED)
		expect(t, "another process", a.lock(want{fh: fh, svid: 2, off: 5, len: 1}), nlm4.NLM4_DENIED)
		expect(t, "another client, the same process", b.lock(ex), nlm4.NLM4_DENIED)

		var res nlm4.Nlm4Testres
		b.call(nlm4.NLMPROC4_TEST, &nlm4.Nlm4Testargs{Cookie: []byte("x"), Alock: b.alock(want{fh: fh, svid: 9, off: 7, len: 1})}, &res)
		if h := res.TestStat.Holder; res.TestStat.Stat != nlm4.NLM4_DENIED || h.Svid != 1 || !h.Exclusive || h.LOffset != 0 || h.LLen != 0 {
			t.Errorf("TEST: %+v", res.TestStat)
		}
		expect(t, "unlocking what another holds", b.unlock(ex), nlm4.NLM4_GRANTED)
		expect(t, "it is still held", b.lock(ex), nlm4.NLM4_DENIED)
		expect(t, "unlocking the middle", a.unlock(want{fh: fh, svid: 1, off: 10, len: 10}), nlm4.NLM4_GRANTED)
		expect(t, "the middle is free", b.lock(want{fh: fh, svid: 1, off: 10, len: 10, exclusive: true}), nlm4.NLM4_GRANTED)
		expect(t, "its neighbour is not", b.lock(want{fh: fh, svid: 1, off: 10, len: 11, exclusive: true}), nlm4.NLM4_DENIED)
		if st := l.svc.Stats(); st.Locks != 3 || st.Clients != 2 || st.Watched != 2 {
			t.Errorf("%+v", st)
		}
		expect(t, "unlock", a.unlock(ex), nlm4.NLM4_GRANTED)
		expect(t, "unlock again", a.unlock(ex), nlm4.NLM4_GRANTED)
		expect(t, "unlock", b.unlock(ex), nlm4.NLM4_GRANTED)
		if st := l.svc.Stats(); st.Locks != 0 || len(l.svc.files) != 0 {
			t.Errorf("%+v, %d files", st, len(l.svc.files))
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh, secret, readable := l.file("f", 0o666), l.file("s", 0o600), l.file("r", 0o644)
		a := l.guest("a", "192.0.2.11")
		a.uid = 1000
		forged := append([]byte(nil), fh...)
		forged[len(forged)-1] ^= 1
		for name, tc := range map[string]struct {
			w    want
			want nlm4.Nlm4Stats
		}{
			"no handle":             {want{}, nlm4.NLM4_STALE_FH},
			"too long a handle":     {want{fh: make([]byte, 200)}, nlm4.NLM4_STALE_FH},
			"a forged handle":       {want{fh: forged}, nlm4.NLM4_STALE_FH},
			"beyond the end":        {want{fh: fh, off: math.MaxInt64 + 1}, nlm4.NLM4_FBIG},
			"reaching beyond it":    {want{fh: fh, off: math.MaxInt64, len: 2}, nlm4.NLM4_FBIG},
			"to the end, as all":    {want{fh: fh, off: 1, len: math.MaxUint64}, nlm4.NLM4_GRANTED},
			"not readable":          {want{fh: secret}, nlm4.NLM4_FAILED},
			"readable":              {want{fh: readable}, nlm4.NLM4_GRANTED},
			"readable, to be alone": {want{fh: readable, exclusive: true}, nlm4.NLM4_FAILED},
			"a late reclaim":        {want{fh: fh, reclaim: true}, nlm4.NLM4_GRANTED}, // there is no grace at all
		} {
			expect(t, name, a.lock(tc.w), tc.want)
		}
		var res nlm4.Nlm4Res
		a.call(nlm4.NLMPROC4_GRANTED, &nlm4.Nlm4Testargs{Alock: a.alock(want{fh: fh})}, &res)
		expect(t, "a grant that nobody waits for", res.Stat.Stat, nlm4.NLM4_DENIED)
	})
}

func TestBlockedIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		expect(t, "a", a.lock(want{fh: fh, svid: 1, exclusive: true}), nlm4.NLM4_GRANTED)
		wait := want{fh: fh, svid: 7, off: 3, len: 4, exclusive: true, block: true}
		expect(t, "b", b.lock(wait), nlm4.NLM4_BLOCKED)
		expect(t, "b again", b.lock(wait), nlm4.NLM4_BLOCKED)
		if st := l.svc.Stats(); st.Queued != 1 {
			t.Errorf("%+v", st)
		}
		began := time.Now()
		expect(t, "unlock", a.unlock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
		g := <-b.grants
		if took := time.Since(began); took != 0 {
			t.Errorf("the grant took %v", took)
		}
		if g.Alock.Svid != 7 || string(g.Alock.Fh) != string(fh) || g.Alock.LOffset != 3 || g.Alock.LLen != 4 || !g.Exclusive || string(g.Alock.Oh) != "\x07" {
			t.Errorf("granted %+v", g)
		}
		synctest.Wait() // the server has b's word that it took the lock: from now on a cancel is too late
		expect(t, "it is b's", a.lock(want{fh: fh, svid: 1, off: 6, len: 1}), nlm4.NLM4_DENIED)
		expect(t, "cancelled too late", b.cancel(wait), nlm4.NLM4_DENIED)
		expect(t, "unlock", b.unlock(wait), nlm4.NLM4_GRANTED)
		expect(t, "free", a.lock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
		synctest.Wait()
		if n := len(l.svc.grants); n != 0 || len(b.grants) != 0 {
			t.Errorf("%d grants are left, %d were sent twice", n, len(b.grants))
		}
	})
}

// TestFairness has readers come while a writer waits: they come after it, unless
// they do not want to wait.
func TestFairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		lock := func(svid int32, exclusive, block bool) nlm4.Nlm4Stats {
			return a.lock(want{fh: fh, svid: svid, exclusive: exclusive, block: block})
		}
		expect(t, "reader 1", lock(1, false, true), nlm4.NLM4_GRANTED)
		expect(t, "writer 2", lock(2, true, true), nlm4.NLM4_BLOCKED)
		expect(t, "reader 3", lock(3, false, true), nlm4.NLM4_BLOCKED)
		expect(t, "writer 4", lock(4, true, true), nlm4.NLM4_BLOCKED)
		expect(t, "reader 5 does not wait", lock(5, false, false), nlm4.NLM4_GRANTED)
		expect(t, "reader 1 again", lock(1, false, true), nlm4.NLM4_GRANTED)
		for _, svid := range []int32{1, 5} {
			expect(t, "unlock", a.unlock(want{fh: fh, svid: svid}), nlm4.NLM4_GRANTED)
		}
		for _, svid := range []int32{2, 3, 4} {
			if g := <-a.grants; g.Alock.Svid != svid {
				t.Errorf("%d is granted, want %d", g.Alock.Svid, svid)
			}
			synctest.Wait()
			if len(a.grants) != 0 {
				t.Errorf("%d more are granted beside %d", len(a.grants), svid)
			}
			expect(t, "unlock", a.unlock(want{fh: fh, svid: svid}), nlm4.NLM4_GRANTED)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		expect(t, "reader 1", a.lock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
		writer := want{fh: fh, svid: 2, exclusive: true, block: true}
		expect(t, "writer 2", a.lock(writer), nlm4.NLM4_BLOCKED)
		expect(t, "reader 3 behind it", a.lock(want{fh: fh, svid: 3, block: true}), nlm4.NLM4_BLOCKED)
		expect(t, "cancelling another", a.cancel(want{fh: fh, svid: 2, exclusive: true, len: 1}), nlm4.NLM4_DENIED)
		expect(t, "cancel", a.cancel(writer), nlm4.NLM4_GRANTED)
		if g := <-a.grants; g.Alock.Svid != 3 {
			t.Errorf("%d is granted", g.Alock.Svid)
		}
		expect(t, "cancel again", a.cancel(writer), nlm4.NLM4_DENIED)
		expect(t, "wait again", a.lock(writer), nlm4.NLM4_BLOCKED)
		expect(t, "who unlocks does not wait", a.unlock(writer), nlm4.NLM4_GRANTED)
		if st := l.svc.Stats(); st.Queued != 0 || st.Locks != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestLocalProgram waits for a lock that a program of the server's host holds,
// which says nothing when it frees it.
func TestLocalProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		lock, unlock := l.local(fh)
		if err := lock(); err != nil {
			t.Fatal(err)
		}
		wait := want{fh: fh, svid: 1, exclusive: true, block: true}
		expect(t, "not waiting", a.lock(want{fh: fh, svid: 1}), nlm4.NLM4_DENIED)
		expect(t, "waiting", a.lock(wait), nlm4.NLM4_BLOCKED)
		var res nlm4.Nlm4Testres
		a.call(nlm4.NLMPROC4_TEST, &nlm4.Nlm4Testargs{Alock: a.alock(want{fh: fh, svid: 1})}, &res)
		if res.TestStat.Stat != nlm4.NLM4_DENIED || res.TestStat.Holder.Svid != 0 {
			t.Errorf("TEST: %+v", res.TestStat)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(a.grants) != 0 {
			t.Fatal("granted against a local program")
		}
		unlock()
		began := time.Now()
		<-a.grants
		if took := time.Since(began); took > 2*pollPause {
			t.Errorf("the grant took %v", took)
		}
		if lock() == nil {
			t.Error("the local program has its lock against the client's")
		}
	})
}

// TestGrantIsRepeated has a client that is away when it is granted a lock.
func TestGrantIsRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		away time.Duration
		held bool // by the waiter, in the end
	}{"for a while": {30 * time.Second, true}, "for good": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, Options{})
				fh := l.file("f", 0o666)
				a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
				expect(t, "a", a.lock(want{fh: fh, svid: 1, exclusive: true}), nlm4.NLM4_GRANTED)
				expect(t, "b", b.lock(want{fh: fh, svid: 2, exclusive: true, block: true}), nlm4.NLM4_BLOCKED)
				b.down()
				expect(t, "unlock", a.unlock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
				time.Sleep(tc.away)
				synctest.Wait()
				b.up()
				time.Sleep(2 * maxGrantPause)
				if got := len(b.grants) == 1; got != tc.held {
					t.Errorf("granted %t, want %t\n%s", got, tc.held, l.log)
				}
				if free := a.lock(want{fh: fh, svid: 1}) == nlm4.NLM4_GRANTED; free == tc.held {
					t.Errorf("free %t", free)
				}
				if st := l.svc.Stats(); (st.Abandoned == 0) != tc.held {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestGrantAnswers goes through what a client may answer.
func TestGrantAnswers(t *testing.T) {
	type how = func(*nlm4.Nlm4Testargs) (nlm4.Nlm4Stats, error)
	first := func(st nlm4.Nlm4Stats, err error, then nlm4.Nlm4Stats) func() how {
		return func() how {
			n := 0
			return func(*nlm4.Nlm4Testargs) (nlm4.Nlm4Stats, error) {
				if n++; n == 1 {
					return st, err
				}
				return then, nil
			}
		}
	}
	for name, tc := range map[string]struct {
		how  func() how
		held bool
	}{
		"refused":                    {first(nlm4.NLM4_DENIED, nil, 0), false},
		"not ready":                  {first(nlm4.NLM4_DENIED_GRACE_PERIOD, nil, nlm4.NLM4_GRANTED), true},
		"not ready, then refused":    {first(nlm4.NLM4_DENIED_GRACE_PERIOD, nil, nlm4.NLM4_DENIED), false},
		"broken, then granted":       {first(0, errFull, nlm4.NLM4_GRANTED), true},
		"perhaps had, then refused":  {first(0, errFull, nlm4.NLM4_DENIED), true},
		"nonsense":                   {first(nlm4.NLM4_FBIG, nil, 0), false},
		"accepted":                   {first(nlm4.NLM4_GRANTED, nil, 0), true},
		"accepted before it is told": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, async := range []bool{false, true} {
				if async && tc.how == nil {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					l := newLab(t, Options{})
					fh := l.file("f", 0o666)
					a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
					if tc.how != nil {
						b.answers(tc.how())
					}
					expect(t, "a", a.lock(want{fh: fh, svid: 1, exclusive: true}), nlm4.NLM4_GRANTED)
					wait := want{fh: fh, svid: 2, exclusive: true, block: true}
					if async {
						b.call(nlm4.NLMPROC4_LOCK_MSG, b.lockArgs(wait), &xdr.Void{})
						if r := <-b.results; r.Stat.Stat != nlm4.NLM4_BLOCKED || string(r.Cookie) != "cook" {
							t.Errorf("LOCK_RES: %+v", r)
						}
					} else {
						expect(t, "b", b.lock(wait), nlm4.NLM4_BLOCKED)
					}
					if tc.how == nil {
						b.down()
					}
					expect(t, "unlock", a.unlock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
					if tc.how == nil {
						expect(t, "it asks again", b.lock(wait), nlm4.NLM4_GRANTED)
						b.up()
					}
					time.Sleep(2 * grantFor)
					synctest.Wait()
					if n := len(l.svc.grants); n != 0 {
						t.Errorf("%d grants are still sent", n)
					}
					if free := a.lock(want{fh: fh, svid: 1}) == nlm4.NLM4_GRANTED; free == tc.held {
						t.Errorf("async %t: free %t\n%s", async, free, l.log)
					}
				})
			}
		})
	}
}

func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh, secret := l.file("f", 0o666), l.file("s", 0o600)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		b.uid = 1000
		share := func(g *guest, p *xdr.Proc, fh []byte, mode nlm4.Fsh4Mode, access nlm4.Fsh4Access) nlm4.Nlm4Stats {
			var res nlm4.Nlm4Shareres
			g.call(p, &nlm4.Nlm4Shareargs{Share: nlm4.Nlm4Share{CallerName: []byte(g.name), Fh: fh, Oh: []byte("o"), Mode: mode, Access: access}}, &res)
			return res.Stat
		}
		expect(t, "a denies writing", share(a, nlm4.NLMPROC4_SHARE, fh, nlm4.FsmDW, nlm4.FsaR), nlm4.NLM4_GRANTED)
		expect(t, "again", share(a, nlm4.NLMPROC4_SHARE, fh, nlm4.FsmDW, nlm4.FsaR), nlm4.NLM4_GRANTED)
		expect(t, "b writes", share(b, nlm4.NLMPROC4_SHARE, fh, nlm4.FsmDN, nlm4.FsaW), nlm4.NLM4_DENIED)
		expect(t, "b denies reading", share(b, nlm4.NLMPROC4_SHARE, fh, nlm4.FsmDR, nlm4.FsaR), nlm4.NLM4_DENIED)
		expect(t, "b reads", share(b, nlm4.NLMPROC4_SHARE, fh, nlm4.FsmDN, nlm4.FsaR), nlm4.NLM4_GRANTED)
		expect(t, "b has no right", share(b, nlm4.NLMPROC4_SHARE, secret, nlm4.FsmDN, nlm4.FsaR), nlm4.NLM4_FAILED)
		expect(t, "b has no right, and wants none", share(b, nlm4.NLMPROC4_SHARE, secret, nlm4.FsmDRW, nlm4.FsaNONE), nlm4.NLM4_FAILED)
		expect(t, "a gives it up", share(a, nlm4.NLMPROC4_UNSHARE, fh, nlm4.FsmDW, nlm4.FsaR), nlm4.NLM4_GRANTED)
		expect(t, "b writes", share(b, nlm4.NLMPROC4_SHARE, fh, nlm4.FsmDN, nlm4.FsaRW), nlm4.NLM4_GRANTED)
		b.call(nlm4.NLMPROC4_FREE_ALL, &nlm4.Nlm4Notify{Name: []byte("b")}, &xdr.Void{})
		expect(t, "b has freed all", share(a, nlm4.NLMPROC4_SHARE, fh, nlm4.FsmDRW, nlm4.FsaRW), nlm4.NLM4_GRANTED)
	})
}
