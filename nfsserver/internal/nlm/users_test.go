package nlm

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/xdr"
)

// The users of one host share its address. A user that the lab knows calls from
// an address of usersNet, whose last number is the user's; nobody knows the last one.
const (
	usersHost = "192.0.2.11"
	usersNet  = "198.51.100."
	nobody    = 255
)

// userOf is for oncrpc.ServerOptions.Peer.
func userOf(_ net.Conn, remote, _ net.Addr) net.Addr {
	at, ok := remote.(*net.TCPAddr)
	if !ok || at.IP.Mask(net.CIDRMask(24, 32)).String() != usersNet+"0" {
		return remote
	}
	uid := uint32(at.IP.To4()[3])
	if uid == nobody {
		uid = oncrpc.UnknownUser
	}
	return &oncrpc.UserAddr{Addr: &net.TCPAddr{IP: net.ParseIP(usersHost), Port: at.Port}, UID: uid}
}

// user is a user of a host of that name.
func (l *lab) user(name string, uid int) *guest {
	l.t.Helper()
	return l.guest(name, fmt.Sprint(usersNet, uid))
}

func (g *guest) freeAll() {
	g.l.t.Helper()
	g.call(nlm4.NLMPROC4_FREE_ALL, &nlm4.Nlm4Notify{Name: []byte(g.name), State: g.state}, &xdr.Void{})
}

func (g *guest) reserve(p *xdr.Proc, w want) nlm4.Nlm4Stats {
	g.l.t.Helper()
	var res nlm4.Nlm4Shareres
	g.call(p, &nlm4.Nlm4Shareargs{Share: nlm4.Nlm4Share{CallerName: []byte(g.name), Fh: w.fh, Oh: []byte{byte(w.svid)},
		Mode: nlm4.FsmDRW, Access: nlm4.FsaRW}}, &res)
	return res.Stat
}

// TestUsersOfOneHost: users who share an address, and call themselves the same, free
// nothing of each other's, in no way. The host itself does.
func TestUsersOfOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh, other := l.file("f", 0o666), l.file("g", 0o666)
		host, alice := l.guest("host", usersHost), l.user("host", 1)
		mine := want{fh: fh, svid: 1, len: 1, exclusive: true}
		expect(t, "a lock", alice.lock(mine), nlm4.NLM4_GRANTED)
		expect(t, "a reservation", alice.reserve(nlm4.NLMPROC4_SHARE, want{fh: other, svid: 1}), nlm4.NLM4_GRANTED)
		for _, g := range []*guest{l.user("host", 2), l.user("host", nobody)} {
			theirs := want{fh: fh, svid: 1, off: 10, len: 1, exclusive: true}
			expect(t, "another's lock", g.lock(theirs), nlm4.NLM4_GRANTED)
			expect(t, "a lock under another's name", g.lock(mine), nlm4.NLM4_DENIED)
			expect(t, "an unlock under another's name", g.unlock(mine), nlm4.NLM4_GRANTED)
			expect(t, "the end of another's reservation", g.reserve(nlm4.NLMPROC4_UNSHARE, want{fh: other, svid: 1}), nlm4.NLM4_GRANTED)
			g.state += 2
			g.notify("host")
			if n := l.svc.Stats().Locks; n != 1 {
				t.Errorf("user %s: %d locks after a notice of its own restart, want the other's", g.ip, n)
			}
			expect(t, "its lock again", g.lock(theirs), nlm4.NLM4_GRANTED)
			g.freeAll()
			if n := l.svc.Stats().Locks; n != 1 {
				t.Errorf("user %s: %d locks after FREE_ALL, want the other's", g.ip, n)
			}
			expect(t, "a reservation against another's", g.reserve(nlm4.NLMPROC4_SHARE, want{fh: other, svid: 1}), nlm4.NLM4_DENIED)
		}
		held := l.svc.Held()
		if len(held) != 1 || held[0].User != "1" || held[0].Addr.String() != usersHost {
			t.Errorf("%+v", held)
		}
		host.freeAll()
		if n := l.svc.Stats().Locks; n != 0 {
			t.Errorf("%d locks after the host's FREE_ALL", n)
		}
		expect(t, "a lock after it", alice.lock(mine), nlm4.NLM4_GRANTED)
		host.state += 2
		host.notify("host")
		if n := l.svc.Stats().Locks; n != 0 {
			t.Errorf("%d locks after the host's notice", n)
		}
	})
}

// TestUsersQuota: a user who takes all locks that a client may have leaves as many to
// another at the same address.
func TestUsersQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4
		l := newLab(t, Options{MaxHoldings: most})
		fh := l.file("f", 0o666)
		for uid := range 3 {
			g := l.user("host", 1+uid)
			for i := range 2 * most {
				st := nlm4.NLM4_GRANTED
				if i >= most {
					st = nlm4.NLM4_DENIED_NOLOCKS
				}
				expect(t, fmt.Sprintf("lock %d of user %d", i, uid), g.lock(want{fh: fh, svid: int32(i), off: uint64(10*uid + i), len: 1}), st)
			}
		}
	})
}

// TestUsersWaits: a lock that waits is granted to its user, and nobody else may refuse
// or cancel it.
func TestUsersWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, Options{})
		fh := l.file("f", 0o666)
		host, alice, bob := l.guest("host", usersHost), l.user("host", 1), l.user("host", 2)
		w := want{fh: fh, svid: 1, exclusive: true, block: true}
		expect(t, "a lock", host.lock(w), nlm4.NLM4_GRANTED)
		expect(t, "a lock that waits", alice.lock(w), nlm4.NLM4_BLOCKED)
		expect(t, "another's cancel", bob.cancel(w), nlm4.NLM4_DENIED)
		expect(t, "the unlock", host.unlock(w), nlm4.NLM4_GRANTED)
		<-host.grants
		synctest.Wait()
		if held := l.svc.Held(); len(held) != 1 || held[0].User != "1" || held[0].Waits {
			t.Errorf("%+v", held)
		}
	})
}

// TestUsersMonitored: a host stays in the list of those to be told of a restart as long
// as any of its users holds a lock.
func TestUsersMonitored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := newLab(t, Options{StateDir: dir})
		fh := l.file("f", 0o666)
		alice, bob := l.user("host", 1), l.user("host", 2)
		w := want{fh: fh, svid: 1, len: 1}
		listed := func() int {
			time.Sleep(idleAfter + 2*idleEvery)
			synctest.Wait()
			files, _ := filepath.Glob(filepath.Join(dir, "nsm-host-*"))
			return len(files)
		}
		for _, g := range []*guest{alice, bob} {
			expect(t, "a lock", g.lock(w), nlm4.NLM4_GRANTED)
		}
		expect(t, "an unlock", alice.unlock(w), nlm4.NLM4_GRANTED)
		if n := listed(); n != 1 || l.svc.Stats().Clients != 1 {
			t.Errorf("%d hosts are listed, %d clients known", n, l.svc.Stats().Clients)
		}
		expect(t, "the other unlock", bob.unlock(w), nlm4.NLM4_GRANTED)
		if n := listed(); n != 0 {
			t.Errorf("%d hosts are listed when none has a lock", n)
		}
	})
}
