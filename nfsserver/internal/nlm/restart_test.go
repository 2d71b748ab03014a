package nlm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/proto/nlm4"
)

// TestClientRestart goes through the news that a client has restarted, true and
// false.
func TestClientRestart(t *testing.T) {
	for name, tc := range map[string]struct {
		from  string // of three guests
		as    string
		state int32 // what is told; locks were taken under 1
		free  bool
	}{
		"itself":                    {"a", "a.example.org", 3, true},
		"itself, short":             {"a", "a", 3, true},
		"itself, in capitals":       {"a", "A.Example.ORG", 3, true},
		"itself, late":              {"a", "a.example.org", 1, false},
		"itself, another domain":    {"a", "a.example.net", 3, false},
		"another name":              {"a", "c", 3, false},
		"another address":           {"b", "a.example.org", 3, false},
		"another name, its address": {"a2", "a2", 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, Options{})
				fh := l.file("f", 0o666)
				other := l.file("g", 0o666)
				guests := map[string]*guest{
					"a": l.guest("a.example.org", "192.0.2.11"), "b": l.guest("b", "192.0.2.12"), "a2": l.guest("a2", "192.0.2.11")}
				a, b := guests["a"], guests["b"]
				mine := want{fh: fh, svid: 1, exclusive: true, block: true}
				expect(t, "a", a.lock(mine), nlm4.NLM4_GRANTED)
				expect(t, "a, another file", a.lock(want{fh: other, svid: 4, exclusive: true}), nlm4.NLM4_GRANTED)
				expect(t, "b waits", b.lock(mine), nlm4.NLM4_BLOCKED)
				expect(t, "a waits", a.lock(want{fh: fh, svid: 2, block: true}), nlm4.NLM4_BLOCKED)
				guests[tc.from].state = tc.state
				guests[tc.from].notify(tc.as)
				synctest.Wait()
				if got := len(b.grants) == 1; got != tc.free {
					t.Errorf("b is granted the lock: %t\n%s", got, l.log)
				}
				wanted := 2
				if tc.free {
					wanted = 1 // b's
				}
				if st := l.svc.Stats(); st.Locks != wanted || (st.Queued == 0) != tc.free {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestLockedSince takes locks after a restart whose news come late.
func TestLockedSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		old, both, since := want{fh: fh, svid: 1, len: 1}, want{fh: fh, svid: 2, off: 1, len: 1}, want{fh: fh, svid: 3, off: 2, len: 1}
		expect(t, "of before", a.lock(old), nlm4.NLM4_GRANTED)
		expect(t, "of a process whose number comes again", a.lock(both), nlm4.NLM4_GRANTED)
		a.state = 3
		expect(t, "since", a.lock(since), nlm4.NLM4_GRANTED)
		both.off = 9
		expect(t, "the number again", a.lock(both), nlm4.NLM4_GRANTED)
		if st := l.svc.Stats(); st.Locks != 3 { // the new life of 2 has lost byte 1 at once
			t.Errorf("%+v", st)
		}
		a.notify("a")
		a.notify("a")
		if st := l.svc.Stats(); st.Locks != 2 {
			t.Errorf("%+v", st)
		}
		b := l.guest("b", "192.0.2.12")
		expect(t, "byte 0 and 1", b.lock(want{fh: fh, svid: 1, len: 2, exclusive: true}), nlm4.NLM4_GRANTED)
		expect(t, "byte 2", b.lock(want{fh: fh, svid: 1, off: 2, len: 1, exclusive: true}), nlm4.NLM4_DENIED)
		expect(t, "byte 9", b.lock(want{fh: fh, svid: 1, off: 9, len: 1, exclusive: true}), nlm4.NLM4_DENIED)
	})
}

// TestServerRestart has a client that held a lock hear of the restart and reclaim
// it within the grace, while another has to wait for its end.
func TestServerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{StateDir: t.TempDir(), Grace: 90 * time.Second}
		l := newLab(t, o)
		fh := l.file("f", 0o666)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		mine := want{fh: fh, svid: 1, exclusive: true}
		if l.svc.Stats().Grace {
			t.Error("a grace, and there was nobody before")
		}
		expect(t, "a", a.lock(mine), nlm4.NLM4_GRANTED)
		first := l.svc.nsm.State()
		l.end()
		l.start(o)
		if st := l.svc.Stats(); !st.Grace || st.Locks != 0 {
			t.Fatalf("%+v", st)
		}
		news := <-a.news
		if string(news.MonName) != "server.example.org" || news.State != first+2 || news.State&1 == 0 {
			t.Errorf("told %q, state %d; it was %d", news.MonName, news.State, first)
		}
		expect(t, "b in the grace", b.lock(mine), nlm4.NLM4_DENIED_GRACE_PERIOD)
		var res nlm4.Nlm4Testres
		b.call(nlm4.NLMPROC4_TEST, &nlm4.Nlm4Testargs{Alock: b.alock(mine)}, &res)
		expect(t, "TEST in the grace", res.TestStat.Stat, nlm4.NLM4_DENIED_GRACE_PERIOD)
		mine.reclaim = true
		expect(t, "a reclaims", a.lock(mine), nlm4.NLM4_GRANTED)
		expect(t, "a unlocks", a.unlock(mine), nlm4.NLM4_GRANTED)
		expect(t, "a reclaims again", a.lock(mine), nlm4.NLM4_GRANTED)
		time.Sleep(o.Grace)
		synctest.Wait()
		mine.reclaim = false
		expect(t, "b after the grace", b.lock(mine), nlm4.NLM4_DENIED)
		mine.reclaim = true
		expect(t, "b reclaims too late", b.lock(mine), nlm4.NLM4_DENIED_GRACE_PERIOD)
		if len(a.news)+len(b.news) != 0 {
			t.Error("told twice")
		}
		if st := l.svc.Stats(); st.Owed != 0 || st.Watched != 2 || st.Grace || st.GraceDenied != 3 {
			t.Errorf("%+v", st)
		}
	})
}

// TestCrashInGrace has the server crash again after a client has been told of the restart, and before it has claimed its
// lock back: there is a grace again, and the client is told again. One that does not come is forgotten.
func TestCrashInGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{StateDir: t.TempDir(), Grace: time.Minute}
		l := newLab(t, o)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		mine := want{fh: l.file("f", 0o666), svid: 1, exclusive: true}
		expect(t, "a", a.lock(mine), nlm4.NLM4_GRANTED)
		for range 3 {
			l.end()
			l.start(o)
			<-a.news
			synctest.Wait()
			if st := l.svc.Stats(); !st.Grace || st.Owed != 0 {
				t.Errorf("%+v", st)
			}
		}
		expect(t, "b in the grace", b.lock(mine), nlm4.NLM4_DENIED_GRACE_PERIOD)
		mine.reclaim = true
		expect(t, "a reclaims", a.lock(mine), nlm4.NLM4_GRANTED)
		time.Sleep(2 * time.Minute)
		files := func() int {
			list, _ := filepath.Glob(filepath.Join(o.StateDir, "nsm-host-*"))
			return len(list)
		}
		if st := l.svc.Stats(); st.Watched != 1 || files() != 1 {
			t.Errorf("%+v, %d on disk", st, files())
		}
		l.end()
		l.start(o)
		<-a.news
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if st := l.svc.Stats(); st.Grace || files() != 0 {
			t.Errorf("%+v, %d on disk: one that did not come is not forgotten", st, files())
		}
	})
}

// TestAwayAtRestart has a client that answers late, and one that never does.
func TestAwayAtRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{StateDir: t.TempDir(), Grace: time.Minute}
		l := newLab(t, o)
		fh := l.file("f", 0o666)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		for _, g := range []*guest{a, b} {
			expect(t, g.name, g.lock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
			g.down()
		}
		l.end()
		l.start(o)
		time.Sleep(5 * time.Minute)
		a.up()
		<-a.news
		synctest.Wait()
		if n := l.svc.Stats().Owed; n != 1 {
			t.Errorf("%d are owed", n)
		}
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if st := l.svc.Stats(); st.Owed != 0 {
			t.Errorf("%+v", st)
		}
		if !strings.Contains(l.log.String(), "did not answer") {
			t.Error("nothing in the log")
		}
		if files, _ := filepath.Glob(filepath.Join(o.StateDir, "nsm-host-*")); len(files) != 0 {
			t.Errorf("still on disk: %v", files)
		}
	})
}

// TestIdleClient is not monitored for ever.
func TestIdleClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := newLab(t, Options{StateDir: dir})
		fh := l.file("f", 0o666)
		a, b := l.guest("a", "192.0.2.11"), l.guest("b", "192.0.2.12")
		mine := want{fh: fh, svid: 1}
		expect(t, "a", a.lock(mine), nlm4.NLM4_GRANTED)
		expect(t, "b", b.lock(mine), nlm4.NLM4_GRANTED)
		expect(t, "a", a.unlock(mine), nlm4.NLM4_GRANTED)
		time.Sleep(idleAfter + 2*idleEvery)
		synctest.Wait()
		if st := l.svc.Stats(); st.Clients != 1 || st.Watched != 1 {
			t.Errorf("%+v", st)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "nsm-host-*")); len(files) != 1 {
			t.Errorf("on disk: %v", files)
		}
		expect(t, "a", a.lock(mine), nlm4.NLM4_GRANTED)
		if st := l.svc.Stats(); st.Clients != 2 || st.Watched != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestStateCannotBeKept refuses locks that a restart would forget.
func TestStateCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l := newLab(t, Options{StateDir: dir})
		fh := l.file("f", 0o666)
		a := l.guest("a", "192.0.2.11")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		expect(t, "lock", a.lock(want{fh: fh, svid: 1}), nlm4.NLM4_DENIED_NOLOCKS)
		var res nlm4.Nlm4Res
		a.call(nlm4.NLMPROC4_NM_LOCK, a.lockArgs(want{fh: fh, svid: 1}), &res)
		expect(t, "a lock that is not monitored", res.Stat.Stat, nlm4.NLM4_GRANTED)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		expect(t, "lock", a.lock(want{fh: fh, svid: 1}), nlm4.NLM4_GRANTED)
	})
}

// TestRestartFromElsewhere: a host that tells of a restart from another address is not
// believed, but the host is asked where it has locked from.
func TestRestartFromElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		stranger bool  // no rule admits the other address
		down     bool  // the host does not answer
		state    int32 // of the host; it has locked under 1
		asked    int32
		free     bool
	}{
		"its other address": {state: 3, asked: 1, free: true},
		"a lie":             {state: 1, asked: 1},
		"no answer":         {state: 3, down: true},
		"of a stranger":     {state: 3, stranger: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, Options{})
				fh := l.file("f", 0o666)
				a, b := l.guest("a.example.org", "192.0.2.11"), l.guest("b", "192.0.2.12")
				mine := want{fh: fh, svid: 1, exclusive: true, block: true}
				expect(t, "a", a.lock(mine), nlm4.NLM4_GRANTED)
				expect(t, "b waits", b.lock(mine), nlm4.NLM4_BLOCKED)
				if tc.stranger {
					l.admit("192.0.2.11")
				}
				a.state, b.state = tc.state, 3
				if tc.down {
					a.down()
				}
				for range 5 {
					b.notify("a")
					time.Sleep(time.Second)
				}
				if got := a.asked.Load(); got != tc.asked {
					t.Errorf("asked %d times, want %d", got, tc.asked)
				}
				if got := len(b.grants) == 1; got != tc.free {
					t.Errorf("b is granted the lock: %t\n%s", got, l.log)
				}
			})
		})
	}
}
