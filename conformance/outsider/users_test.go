//go:build linux

package outsider

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Two users of this host, and the procedures by which they might meddle.
const (
	alice = 4711
	bob   = 4712

	nfsMKDIR   = 9
	nlmFREEALL = 23
	progNSM    = 100024
	nsmNOTIFY  = 6
)

// as connects from an address of loopback by a socket of this user, who says so in
// its calls, too.
func (s *server) as(uid uint32, address string) *peer {
	s.b.Helper()
	var c net.Conn
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := syscall.Setfsuid(int(uid))
		if err == nil {
			from := &net.TCPAddr{IP: net.ParseIP(address)}
			c, err = net.DialTCP("tcp", from, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: s.port})
		}
		// A thread that ended with its goroutine would end what it has started with it: see Pdeathsig.
		if back := syscall.Setfsuid(os.Geteuid()); back == nil {
			runtime.UnlockOSThread()
		} else {
			err = errors.Join(err, back)
		}
		done <- err
	}()
	s.b.no(<-done)
	s.b.Cleanup(func() { _ = c.Close() })
	return &peer{conn: c, machine: "outsider", uid: uid, gid: uid}
}

// shared is a server that all users of this host share, with a file that all may
// write to.
func (b *box) shared(flags ...string) *server {
	b.Helper()
	root(b.T, "to be two users")
	dir := b.path("srv")
	b.no(os.Mkdir(dir, 0o777))
	b.no(os.Chmod(dir, 0o777)) // whatever the umask
	b.write(filepath.Join(dir, "f"), "text")
	b.no(os.Chmod(filepath.Join(dir, "f"), 0o666))
	return b.serve(dir, flags...)
}

// file is the handle of the file of shared.
func (p *peer) file(b *box) []byte {
	b.Helper()
	file, status, err := p.lookup(p.root(b), "f")
	if err != nil || status != statusOK {
		b.Fatalf("LOOKUP: status %d, %v", status, err)
	}
	return file
}

// TestUsersReplies: a user who sends another one's call again, byte for byte, gets an
// answer of its own, and not the one that was remembered.
func TestUsersReplies(t *testing.T) {
	b := newBox(t)
	s := b.shared()
	one, other := s.as(alice, "127.0.0.1"), s.as(bob, "127.0.0.1")
	call := one.message(progNFS, 3, nfsMKDIR, u32(dirop(one.root(b), "d"), 0, 0, 0, 0, 0, 0))
	for _, x := range []struct {
		who  string
		p    *peer
		want uint32
	}{{"its user", one, statusOK}, {"its user again", one, statusOK}, {"another", other, statusEXIST}} {
		_, err := x.p.conn.Write(call)
		b.no(err)
		r, err := x.p.receive()
		b.no(err)
		if status := r.u32(); status != x.want {
			t.Errorf("MKDIR of %s: status %d, want %d", x.who, status, x.want)
		}
	}
}

// TestUserWritesSlowly: a user begins large WRITEs and does not go on. Another one at
// the same address is served meanwhile.
func TestUserWritesSlowly(t *testing.T) {
	b := newBox(t)
	s := b.shared()
	for range 150 {
		p := s.as(alice, "127.0.0.1")
		_, err := p.conn.Write(p.message(progNFS, 3, nfsWRITE, writeArgs(make([]byte, 32), 0, fileSync, make([]byte, 1<<20)))[:9000])
		b.no(err)
	}
	honest := s.as(bob, "127.0.0.1")
	file, start := honest.file(b), time.Now()
	for range 5 {
		if status, err := honest.write(file, 0, fileSync, pattern(1<<20, 7)); err != nil || status != statusOK {
			t.Fatalf("WRITE beside another user's: status %d, %v", status, err)
		}
	}
	// Those of one user alone would have to wait for half a minute; on a busy machine a WRITE takes seconds.
	if took := time.Since(start); took > 25*time.Second {
		t.Errorf("five WRITEs beside another user's took %v", took)
	}
}

// TestUserReadsNothing: a user asks for much and takes nothing. Another one at the
// same address is served meanwhile.
func TestUserReadsNothing(t *testing.T) {
	b := newBox(t)
	s := b.shared("--max-reply-bytes=16MiB")
	b.write(b.path("srv", "large"), string(pattern(1<<20, 1)))
	for range 40 {
		p := s.as(alice, "127.0.0.1")
		large, _, err := p.lookup(p.root(b), "large")
		b.no(err)
		for range 8 {
			b.no(p.conn.SetWriteDeadline(time.Now().Add(time.Second)))
			if p.send(progNFS, 3, nfsREAD, readArgs(large, 0, 1<<20)) != nil {
				break // it takes no more: enough has been asked
			}
		}
	}
	honest := s.as(bob, "127.0.0.1")
	file := honest.file(b)
	for range 20 {
		if data, status, err := honest.read(file, 100); err != nil || status != statusOK || string(data) != "text" {
			t.Fatalf("READ beside another user's: status %d, %q, %v", status, data, err)
		}
	}
}

// unlock frees a lock that lock has taken, if it is this user's.
func (p *peer) unlock(caller string, file []byte, owner string, off uint64) error {
	args := opaque(opaque(opaque(opaque(nil, []byte("cookie")), []byte(caller)), file), []byte(owner))
	_, err := p.call(progNLM, 4, nlmUNLOCK, u64(u32(args, 1), off, 1))
	return err
}

// frees says in all ways that a host of that name holds no locks any more.
func (p *peer) frees(caller string) error {
	args := opaque(nil, []byte(caller))
	_, err := p.call(progNLM, 4, nlmFREEALL, u32(args, 5))
	if err == nil {
		_, err = p.call(progNSM, 1, nsmNOTIFY, u32(args, 7))
	}
	return err
}

// TestUsersLocks: a user takes all locks that it can have, and frees what it can, by
// the name that another one has at the same address. The other keeps its lock, and has
// room for more. Root speaks for all users, as the kernel's client does.
func TestUsersLocks(t *testing.T) {
	b := newBox(t)
	s := b.shared("--grace=0s", "--udp")
	one, greedy := s.as(alice, "127.0.0.1"), s.as(bob, "127.0.0.1")
	file := one.file(b)
	if status, err := one.lock("host", file, "a", 0); err != nil || status != 0 {
		t.Fatalf("LOCK: status %d, %v", status, err)
	}
	b.no(greedy.unlock("host", file, "a", 0))
	b.no(greedy.frees("host"))
	udp, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", s.port)) // whose it is nobody knows
	b.no(err)
	defer func() { _ = udp.Close() }()
	for _, x := range []struct{ prog, vers, proc uint32 }{{progNLM, 4, nlmFREEALL}, {progNSM, 1, nsmNOTIFY}} {
		_, err := udp.Write(greedy.message(x.prog, x.vers, x.proc, u32(opaque(nil, []byte("host")), 9))[4:])
		b.no(err)
		b.no(udp.SetReadDeadline(time.Now().Add(patience / 4)))
		_, err = udp.Read(make([]byte, 100))
		b.no(err)
	}
	if status, err := greedy.lock("host", file, "a", 0); err != nil || status != 1 {
		t.Errorf("LOCK of what another user has locked: status %d, %v; want denied", status, err)
	}
	last := uint32(0)
	for i := 0; i < 5000 && last == 0; i++ {
		last, err = greedy.lock("greedy", file, fmt.Sprint("owner", i), uint64(100+i))
		b.no(err)
	}
	if last == 0 {
		t.Error("one user has more than 5,000 locks")
	}
	if status, err := one.lock("host", file, "b", 1); err != nil || status != 0 {
		t.Errorf("LOCK beside a greedy user's: status %d, %v", status, err)
	}
	for _, who := range []string{"4711@127.0.0.1", "4712@127.0.0.1"} {
		if r := b.must(0, "ctl", "clients", "--json", "--state-dir", s.state); !strings.Contains(r.stdout, `"`+who+`"`) {
			t.Errorf("%s is not listed: %s", who, r.stdout)
		}
	}
	b.must(0, "ctl", "drop", "4712@127.0.0.1", "--state-dir", s.state)
	if r := b.must(0, "ctl", "locks", "127.0.0.1", "--state-dir", s.state); strings.Contains(r.stdout, "4712@") || strings.Count(r.stdout, "4711@127.0.0.1") != 2 {
		t.Errorf("after the greedy one was dropped:\n%s", r.stdout)
	}
	b.no(s.dial(0).frees("host"))
	if r := b.must(0, "ctl", "locks", "--state-dir", s.state); strings.Contains(r.stdout, "4711@") {
		t.Errorf("after root has freed all:\n%s", r.stdout)
	}
}

// TestManyUsersLocks: users take all locks that they can have, one after the other. The
// next user still finds a few.
func TestManyUsersLocks(t *testing.T) {
	b := newBox(t)
	s := b.shared("--grace=0s", "--max-open-files=512")
	fill := func(uid uint32, most int) (n int) {
		p := s.as(uid, "127.0.0.1")
		file := p.file(b)
		for ; n < most; n++ {
			status, err := p.lock("host", file, fmt.Sprint("owner", n), uint64(uid)<<16+uint64(n))
			if b.no(err); status != 0 {
				break
			}
		}
		return n
	}
	for n := range uint32(10) {
		if got := fill(5000+n, 512); n == 0 && got != 128 {
			t.Errorf("one alone has %d locks, want 128", got)
		}
	}
	if got := fill(alice, 4); got != 4 {
		t.Errorf("a user after ten others has %d locks", got)
	}
}

// TestManyNames: a client holds locks by many long names. The list of clients
// has some of them, and how many there are.
func TestManyNames(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	b.no(os.Chmod(b.path("srv", "f"), 0o666))
	s := b.serve(b.path("srv"), "--grace=0s")
	p := s.dial(uint32(os.Getuid()))
	file := p.file(b)
	for i := range 100 {
		if status, err := p.lock(fmt.Sprintf("%0200d", i), file, "a", uint64(i)); err != nil || status != 0 {
			t.Fatalf("LOCK %d: status %d, %v", i, status, err)
		}
	}
	for flag, want := range map[string]string{"--json=false": "and 96 more", "--json": `"more_names":68`} {
		r := b.must(0, "ctl", "clients", flag, "--state-dir", s.state)
		if len(r.stdout) > 10000 || !strings.Contains(r.stdout, want) {
			t.Errorf("ctl clients %s: %d bytes, want few, and %s in it:\n%.300s", flag, len(r.stdout), want, r.stdout)
		}
	}
}

// TestLogNamesUser: the log has the user who mounts as the kernel knows it, and as whom
// it acts, and not who it says it is.
func TestLogNamesUser(t *testing.T) {
	b := newBox(t)
	s := b.shared()
	p := s.as(alice, "127.0.0.1")
	p.uid, p.gid = 0, 0
	p.root(b)
	b.no(os.MkdirAll(b.path("srv", "closed", "dir"), 0o700))
	if _, status, err := p.mnt("/closed/dir"); err != nil || status != statusACCES {
		t.Fatalf("MNT of what is closed to alice: status %d, %v", status, err)
	}
	b.until("the second is in the log", func() bool { return strings.Contains(s.log.String(), " path=/closed/dir") })
	for _, want := range []string{"client=4711@127.0.0.1 path=/ uid=4711", "client=4711@127.0.0.1 path=/closed/dir claimed_uid=0"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log has not %q:\n%s", want, s.log)
		}
	}
}
