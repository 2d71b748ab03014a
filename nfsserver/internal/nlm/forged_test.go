package nlm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestForged: another host that calls itself as an owner does, with the owner's oh, svid and state, gets nothing of it,
// and frees nothing. Nor does it end, or answer, what waits for the owner.
func TestForged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		owner, waits := l.guest("owner", "192.0.2.11"), l.guest("waits", "192.0.2.12")
		held, waiting := want{fh: fh, svid: 1, exclusive: true}, want{fh: fh, svid: 2, exclusive: true, block: true}
		expect(t, "the lock", owner.lock(held), nlm4.NLM4_GRANTED)
		expect(t, "the reservation", owner.reserve(nlm4.NLMPROC4_SHARE, held), nlm4.NLM4_GRANTED)
		expect(t, "who waits", waits.lock(waiting), nlm4.NLM4_BLOCKED)
		for _, name := range []string{"owner", "waits"} {
			liar := l.guest(name, "192.0.2.66")
			liar.state = 3
			expect(t, "LOCK", liar.lock(held), nlm4.NLM4_DENIED)
			expect(t, "UNLOCK", liar.unlock(held), nlm4.NLM4_GRANTED) // of what it has itself
			expect(t, "UNLOCK of what waits", liar.unlock(waiting), nlm4.NLM4_GRANTED)
			expect(t, "CANCEL", liar.cancel(waiting), nlm4.NLM4_DENIED)
			expect(t, "UNSHARE", liar.reserve(nlm4.NLMPROC4_UNSHARE, held), nlm4.NLM4_GRANTED)
			expect(t, "SHARE", liar.reserve(nlm4.NLMPROC4_SHARE, held), nlm4.NLM4_DENIED)
			liar.freeAll()
			liar.notify(name)
			liar.notify(name + ".example.org")
			liar.call(nsm.SM_SIMU_CRASH, xdr.Void{}, &xdr.Void{})
			for cookie := range uint64(100) { // 0 is where this server's begin
				liar.call(nlm4.NLMPROC4_GRANTED_RES, &nlm4.Nlm4Res{Cookie: cookieBytes(cookie)}, &xdr.Void{})
			}
			liar.down()
		}
		if st := l.svc.Stats(); st.Locks != 1 || st.Queued != 1 || st.Restarts != 0 {
			t.Errorf("%+v", st)
		}
		expect(t, "another reservation", waits.reserve(nlm4.NLMPROC4_SHARE, held), nlm4.NLM4_DENIED)
		expect(t, "the owner unlocks", owner.unlock(held), nlm4.NLM4_GRANTED)
		if g := <-waits.grants; g.Alock.Svid != waiting.svid {
			t.Errorf("granted %+v", g)
		}
	})
}

// oversized are the arguments of a LOCK with an owner of any length, which no codec of ours sends.
type oversized struct {
	nlm4.Nlm4Lockargs
	oh int
}

func (o *oversized) AppendXDR(b []byte) ([]byte, error) {
	b = xdr.AppendOpaque(b, o.Cookie)
	b = xdr.AppendBool(xdr.AppendBool(b, o.Block), o.Exclusive)
	b = xdr.AppendOpaque(xdr.AppendOpaque(b, o.Alock.CallerName), o.Alock.Fh)
	b = xdr.AppendOpaque(b, make([]byte, o.oh))
	b = binary.BigEndian.AppendUint32(b, uint32(o.Alock.Svid))
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, o.Alock.LOffset), o.Alock.LLen)
	return binary.BigEndian.AppendUint32(xdr.AppendBool(b, o.Reclaim), uint32(o.State)), nil
}

// TestHugeOwners: an owner may have the 1024 bytes of the protocol. One of a mebibyte is no arguments, and
// leaves nothing behind.
func TestHugeOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		g := l.guest("g", "192.0.2.11")
		w := want{fh: l.file("f", 0o666), svid: 1, exclusive: true, len: 1}
		ask := func(oh int) (st nlm4.Nlm4Stats, err error) {
			var res nlm4.Nlm4Res
			reply, err := g.client.Call(context.Background(), nlm4.NLMPROC4_LOCK, oncrpc.Auth{}, &oversized{*g.lockArgs(w), oh}, &res)
			reply.Release()
			return res.Stat.Stat, err
		}
		for _, oh := range []int{nlm4.MAXNETOBJ_SZ + 1, 1 << 20} {
			_, err := ask(oh)
			if a, ok := errors.AsType[*oncrpc.AcceptError](err); !ok || a.Stat != oncrpc.GarbageArgs {
				t.Errorf("an owner of %d bytes: %v", oh, err)
			}
		}
		if st := l.svc.Stats(); st.Clients != 0 {
			t.Errorf("%+v", st)
		}
		st, err := ask(nlm4.MAXNETOBJ_SZ)
		if err != nil || st != nlm4.NLM4_GRANTED {
			t.Errorf("an owner of %d bytes: %v, %v", nlm4.MAXNETOBJ_SZ, st, err)
		}
	})
}

// TestExtremes has every procedure meet offsets and lengths at the ends of their types: what no file can have is FBIG.
func TestExtremes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		g, other := l.guest("g", "192.0.2.11"), l.guest("other", "192.0.2.12")
		ends := []uint64{0, 1, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 1, math.MaxUint64}
		for _, off := range ends {
			for _, n := range ends {
				w := want{fh: fh, svid: 1, off: off, len: n, exclusive: true}
				good := nlm4.NLM4_GRANTED
				if toEnd := n == 0 || n == math.MaxUint64; off > math.MaxInt64 || !toEnd && n-1 > math.MaxInt64-off {
					good = nlm4.NLM4_FBIG
				}
				what := fmt.Sprintf("%d bytes from %d", n, off)
				expect(t, "LOCK "+what, g.lock(w), good)
				if good == nlm4.NLM4_GRANTED {
					expect(t, "another's LOCK "+what, other.lock(w), nlm4.NLM4_DENIED)
				}
				expect(t, "UNLOCK "+what, g.unlock(w), good)
				if got := g.cancel(w); got != nlm4.NLM4_DENIED && got != good { // nothing waits
					t.Errorf("CANCEL %s: %v", what, got)
				}
				var res nlm4.Nlm4Testres
				g.call(nlm4.NLMPROC4_TEST, &nlm4.Nlm4Testargs{Alock: g.alock(w)}, &res)
				expect(t, "TEST "+what, res.TestStat.Stat, good)
			}
		}
		if st := l.svc.Stats(); st.Locks != 0 || st.Queued != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestSameCookie: requests are not told apart by their cookies. Each gets its answer, with the cookie it came with.
func TestSameCookie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		g := l.guest("g", "192.0.2.11")
		const n = 20
		for i := range n {
			g.call(nlm4.NLMPROC4_LOCK_MSG, g.lockArgs(want{fh: fh, svid: int32(i), off: uint64(2 * i), len: 1, exclusive: true}), &xdr.Void{})
		}
		for range n {
			if res := <-g.results; res.Stat.Stat != nlm4.NLM4_GRANTED || string(res.Cookie) != "cook" {
				t.Errorf("%+v", res)
			}
		}
		if st := l.svc.Stats(); st.Locks != n {
			t.Errorf("%+v", st)
		}
	})
}

// TestGreedyLocks has a client ask for 100,000 locks: it gets its share, in a bounded amount of memory, and the next
// client still gets what it asks for.
func TestGreedyLocks(t *testing.T) {
	if os.Getenv("NFSBOX_SOAK") == "" {
		t.Skip("100,000 locks, which take long under the race detector: NFSBOX_SOAK=1 asks for them")
	}
	l := newLab(t, Options{})
	files := make([][]byte, 16)
	for i := range files {
		files[i] = l.file(fmt.Sprint(i), 0o666)
	}
	const most = 100_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g := l.guest("g", "192.0.2.11")
	got := 0
	for i := range most {
		owner := i % DefaultMaxHoldings
		w := want{fh: files[owner%len(files)], svid: int32(owner), off: uint64(2 * (i / DefaultMaxHoldings)), len: 1}
		switch st := g.lock(w); st {
		case nlm4.NLM4_GRANTED:
			got++
		case nlm4.NLM4_DENIED_NOLOCKS:
		default:
			t.Fatalf("lock %d: %v", i, st)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got != maxClientLocks {
		t.Errorf("one client has %d locks, want %d", got, maxClientLocks)
	}
	const each = 512 // bytes for a lock, all together; about 100 with this file system
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > maxClientLocks*each {
		t.Errorf("%d locks take %d bytes", got, grown)
	}
	other := l.guest("other", "192.0.2.12")
	for i := range int32(1000) {
		expect(t, "another client", other.lock(want{fh: files[0], svid: i, off: 1 << 20, len: 1}), nlm4.NLM4_GRANTED)
	}
	g.freeAll()
	if st := l.svc.Stats(); st.Locks != 1000 {
		t.Errorf("%+v", st)
	}
}
