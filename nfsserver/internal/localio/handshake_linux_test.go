package localio

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/xdr"
)

// TestProcedure1 tells the two forms apart by the length of their arguments, and
// takes no other.
func TestProcedure1(t *testing.T) {
	r := newRig(t, Options{})
	for _, n := range []int{0, 4, 8, 12, 16, 20, 24, 32, 400} {
		res, err := call1(t, r.rpc, make([]byte, n))
		switch n {
		case 0:
			if err != nil || !bytes.Equal(res, testUUID[:]) {
				t.Errorf("GETUUID: %x, %v", res, err)
			}
		case 16:
			if err != nil || len(res) != 0 {
				t.Errorf("UUID_IS_LOCAL: %x, %v", res, err)
			}
		default:
			e, ok := errors.AsType[*oncrpc.AcceptError](err)
			if !ok || e.Stat != oncrpc.GarbageArgs {
				t.Errorf("%d bytes: %x, %v", n, res, err)
			}
		}
	}
	if _, err := r.rpc.Call(t.Context(), localio.LOCALIOPROC_NULL, oncrpc.Auth{}, xdr.Void{}, xdr.Void{}); err != nil {
		t.Errorf("NULL: %v", err)
	}
	beyond := xdr.Proc{Name: "two", Program: localio.LOCALIO_PROGRAM, Version: 1, Number: 2}
	_, err := r.rpc.Call(t.Context(), &beyond, oncrpc.Auth{}, xdr.Void{}, xdr.Void{})
	if e, ok := errors.AsType[*oncrpc.AcceptError](err); !ok || e.Stat != oncrpc.ProcUnavail {
		t.Errorf("procedure 2: %v", err)
	}
	if st := r.s.Stats(); st.Unknown != 1 || st.Bound != 0 || st.Sessions != 0 {
		t.Errorf("%+v", st)
	}
}

func TestFlavors(t *testing.T) {
	r := newRig(t, Options{})
	sys := oncrpc.AuthSys{UID: 7}
	good, err := sys.Auth()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		auth oncrpc.Auth
		want oncrpc.AuthStat
	}{
		{oncrpc.Auth{}, oncrpc.AuthOK},
		{good, oncrpc.AuthOK},
		{oncrpc.Auth{Flavor: oncrpc.AuthSysFlavor, Body: []byte{1, 2, 3, 4}}, oncrpc.AuthBadCred},
		{oncrpc.Auth{Flavor: oncrpc.AuthGSS, Body: []byte{0, 0, 0, 1}}, oncrpc.AuthTooWeak},
	} {
		var res rawRes
		_, err := r.rpc.Call(t.Context(), localio.LOCALIOPROC_UUID_IS_LOCAL, x.auth, rawArgs(nil), &res)
		e, denied := errors.AsType[*oncrpc.DeniedError](err)
		if denied != (x.want != oncrpc.AuthOK) || denied && e.Auth != x.want || !denied && err != nil {
			t.Errorf("flavor %d: %v, want %v", x.auth.Flavor, err, x.want)
		}
	}
}

func TestHandshake(t *testing.T) {
	r := newRig(t, Options{MaxFiles: 10})
	n := r.local()
	st := r.s.Stats()
	if st.Sessions != 1 || st.Bound != 1 || st.Strangers != 0 || st.UUID != session.FormatUUID(testUUID) ||
		st.Socket != r.dir+"/"+st.UUID+".sock" {
		t.Errorf("%+v", st)
	}
	if n.c.Peer().UserNS != session.UserNS() {
		t.Errorf("the server is %+v", n.c.Peer())
	}
	other := r.local()
	if err := n.c.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session ends", func() bool { return r.s.Stats().Sessions == 1 })
	if other.page.Load(0) != localio.PAGE_LIVE {
		t.Error("the other session ends with it")
	}
	if st := r.s.Stats(); st.Broken != 0 {
		t.Errorf("a client that goes has broken something: %+v", st)
	}
}

// TestStrangeNonce is what a client of another kind does, or one that is not on
// this host.
func TestStrangeNonce(t *testing.T) {
	r := newRig(t, Options{})
	n := greeted(t, r.dir, DefaultMaxFiles)
	r.offer([localio.UUID_SIZE]byte{1, 2, 3})
	r.offer([localio.UUID_SIZE]byte{})
	if st := r.s.Stats(); st.Unknown != 2 || st.Bound != 0 || st.Strangers != 1 {
		t.Errorf("%+v", st)
	}
	r.offer(n.nonce)
	n.isBound()
}

// TestWithoutNonce has all that goes over the socket, and is never BOUND.
func TestWithoutNonce(t *testing.T) {
	r := newRig(t, Options{})
	nonce := [localio.UUID_SIZE]byte{5, 5, 5}
	hash := sha256.Sum256(nonce[:])
	fake := stranger(t, r.dir)
	fake.hello(hash)
	if m, fds := fake.receive(); m.Type != localio.SESSION_WELCOME {
		t.Fatal(m.Type)
	} else if _, err := session.MapPage(fds[0], DefaultMaxFiles); err != nil {
		t.Error(err)
	} else {
		closeFDs(t, fds)
	}
	r.offer([16]byte(hash[:16]))
	r.offer([16]byte(hash[16:]))
	r.offer(testUUID)
	if st := r.s.Stats(); st.Bound != 0 || st.Unknown != 3 {
		t.Errorf("%+v", st)
	}
	// And it is not let to do anything.
	fake.ask(want(r.root))
	fake.ended()
}

// TestNonceOnce binds one session, once.
func TestNonceOnce(t *testing.T) {
	r := newRig(t, Options{})
	n := greeted(t, r.dir, DefaultMaxFiles)
	copied := stranger(t, r.dir)
	copied.hello(sha256.Sum256(n.nonce[:]))
	copied.ended()
	r.offer(n.nonce)
	n.isBound()
	r.offer(n.nonce)
	if st := r.s.Stats(); st.Bound != 1 || st.Unknown != 1 || st.Sessions != 1 {
		t.Errorf("%+v", st)
	}
	if n.page.Load(0) != localio.PAGE_LIVE {
		t.Error("the session is over")
	}
}

// TestLate has a client say nothing, and one whose nonce does not come.
func TestLate(t *testing.T) {
	r := newRig(t, Options{})
	silent := stranger(t, r.dir)
	n := greeted(t, r.dir, DefaultMaxFiles)
	r.s.mu.Lock()
	c := r.s.pending[sha256.Sum256(n.nonce[:])]
	r.s.mu.Unlock()
	if !c.timer.Reset(time.Nanosecond) {
		t.Error("nobody looks after it")
	}
	n.ended()
	silent.ended() // by itself
	if c.page.Load(0) == localio.PAGE_LIVE || n.page.Load(0) == localio.PAGE_LIVE {
		t.Error("its page is live")
	}
	r.offer(n.nonce)
	if st := r.s.Stats(); st.Bound != 0 || st.Unknown != 1 || st.Broken != 2 || st.Strangers != 0 {
		t.Errorf("%+v", st)
	}
}

// TestBoundStays is not ended by the time that strangers have.
func TestBoundStays(t *testing.T) {
	r := newRig(t, Options{})
	n := r.local()
	c := r.client()
	if c.timer.Stop() {
		t.Error("its timer runs")
	}
	r.s.expire(c)
	if got := n.open(want(r.file("f", 0o644))); got[0].Why != localio.SESSION_OK {
		t.Errorf("%v", got[0].Why)
	}
}

func TestStrangersAreBounded(t *testing.T) {
	r := newRig(t, Options{})
	first := stranger(t, r.dir)
	for range maxStrangers - 1 {
		stranger(t, r.dir)
		r.s.mu.Lock()
		for _, c := range r.s.strangers {
			c.timer.Reset(patience) // a busy machine may take longer for all of them than one of them has
		}
		r.s.mu.Unlock()
	}
	n := r.local()
	first.ended()
	eventually(t, "there is room", func() bool { return r.s.Stats().Strangers == maxStrangers-1 })
	if st := r.s.Stats(); st.Crowded != 1 || st.Bound != 1 {
		t.Errorf("%+v", st)
	}
	if n.page.Load(0) != localio.PAGE_LIVE {
		t.Error("the newcomer has gone")
	}
}

// TestCrowd has the user that has most strangers lose one.
func TestCrowd(t *testing.T) {
	s := &Service{}
	of := func(uid uint32) *client { return &client{peer: session.Peer{UID: uid}} }
	alice := of(1)
	s.strangers = append(s.strangers, alice)
	var bob []*client
	for range maxStrangers {
		bob = append(bob, of(2))
	}
	s.strangers = append(s.strangers, bob[:maxStrangers-1]...)
	if got := s.crowd(); got != nil {
		t.Error("somebody goes although there is room")
	}
	s.strangers = append(s.strangers, bob[maxStrangers-1])
	if got := s.crowd(); got != bob[0] {
		t.Errorf("of user %d somebody goes", got.peer.UID)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	r := newRig(t, Options{MaxSessions: 2})
	first := r.local()
	r.local()
	n := greeted(t, r.dir, DefaultMaxFiles)
	r.offer(n.nonce)
	n.ended()
	if st := r.s.Stats(); st.Sessions != 2 || st.Full != 1 || st.Bound != 2 {
		t.Errorf("%+v", st)
	}
	if err := first.c.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool { return r.s.Stats().Sessions == 1 })
	r.local()
}

// TestDisplaced has one user take all the sessions that there are, which keeps out
// nobody else, and another not take more than those who are there have.
func TestDisplaced(t *testing.T) {
	of := func(uid uint32) *client { return &client{peer: session.Peer{UID: uid}} }
	s := &Service{o: Options{MaxSessions: 4}, bound: make(map[*client]struct{})}
	for i, c := range []struct {
		uid, loses uint32
	}{{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 1}, {2, 2}, {1, 1}, {3, 1 | 2}, {4, 2 | 1}, {3, 3}} {
		k := of(c.uid)
		victim := s.displaced(k)
		switch {
		case victim == nil && c.loses != 0, victim != nil && victim.peer.UID&^c.loses != 0:
			t.Errorf("%d: for user %d goes %+v, want one of user %d", i, c.uid, victim, c.loses)
		case victim == nil || victim != k:
			delete(s.bound, victim)
			s.bound[k] = struct{}{}
		}
		if victim != nil && victim.peer.UID == c.uid && victim != k {
			t.Errorf("%d: user %d loses an old session for a new one", i, c.uid)
		}
	}
}

// TestDisplacedEnds ends the session that makes room.
func TestDisplacedEnds(t *testing.T) {
	r := newRig(t, Options{MaxSessions: 2})
	first, second := r.local(), r.local()
	r.s.mu.Lock()
	for c := range r.s.bound {
		c.peer.UID++ // another user's
	}
	r.s.mu.Unlock()
	n := r.local()
	eventually(t, "one has gone", func() bool {
		return (first.page.Load(0) == localio.PAGE_LIVE) != (second.page.Load(0) == localio.PAGE_LIVE)
	})
	if st := r.s.Stats(); st.Sessions != 2 || st.Full != 1 || st.Bound != 3 || n.page.Load(0) != localio.PAGE_LIVE {
		t.Errorf("%+v", st)
	}
}

func TestOptions(t *testing.T) {
	dir := sharedDir(t)
	for name, o := range map[string]Options{
		"no UUID":         {Dir: dir},
		"too many files":  {Dir: dir, UUID: testUUID, MaxFiles: MaxFiles + 1},
		"negative files":  {Dir: dir, UUID: testUUID, MaxFiles: -1},
		"no sessions":     {Dir: dir, UUID: testUUID, MaxSessions: -1},
		"no directory":    {Dir: dir + "/a/b", UUID: testUUID},
		"a bad directory": {Dir: "/proc/self/fd", UUID: testUUID},
	} {
		if s, err := New(o); err == nil {
			t.Errorf("%s: %v", name, errors.Join(errors.New("no error"), s.Close()))
		}
	}
}
