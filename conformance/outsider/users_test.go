//go:build linux

package outsider

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Two users of this host, and the procedures by which they might meddle.
const (
	alice = 4711
	bob   = 4712

	nfsMKDIR = 9
)

// as connects from an address of loopback by a socket of this user, who says so in
// its calls, too.
func (s *server) as(uid uint32, address string) *peer {
	s.b.Helper()
	var c net.Conn
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := syscall.Setfsuid(int(uid))
		if err == nil {
			from := &net.TCPAddr{IP: net.ParseIP(address)}
			c, err = net.DialTCP("tcp", from, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: s.port})
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
	// Those of one user alone would have to wait for half a minute.
	if took := time.Since(start); took > 8*time.Second {
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
