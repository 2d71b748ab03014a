//go:build linux

package outsider

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// nobody is a user of this host without any rights.
const nobody = 65534

// TestNobodyIsRoot: a server that root runs with the defaults takes a program of
// this host for no more than the kernel does, whatever user it says to be.
func TestNobodyIsRoot(t *testing.T) {
	root(t, "to serve as root")
	b := newBox(t)
	dir := b.path("srv")
	b.no(os.Mkdir(dir, 0o755))
	b.no(os.Mkdir(filepath.Join(dir, "open"), 0o777))
	b.no(os.Chmod(filepath.Join(dir, "open"), 0o777)) // whatever the umask
	b.write(filepath.Join(dir, "secret"), "of user 4711")
	b.no(os.Chmod(filepath.Join(dir, "secret"), 0o600))
	b.no(os.Chown(filepath.Join(dir, "secret"), 4711, 4711))
	s := b.serve(dir)
	cmd := b.asNobody("cp", b.path("evil"), s.url+"open/evil?uid=0&gid=0")
	b.no(os.WriteFile(b.path("evil"), []byte("#!/bin/sh\n"), 0o755))
	b.no(os.Chmod(b.path("evil"), 0o4755))
	_ = b.finish(cmd)
	if info, err := os.Stat(filepath.Join(dir, "open", "evil")); err == nil && info.Sys().(*syscall.Stat_t).Uid == 0 {
		t.Errorf("nobody has made a file of root's, mode %v", info.Mode())
	}
	if r := b.finish(b.asNobody("cat", s.url+"secret?uid=4711&gid=4711")); r.stdout != "" {
		t.Errorf("nobody read another user's file: %q", r.stdout)
	}
}

// TestServedRootReplaced: the directory that is served was removed and made again. The server's log and doctor
// say that a reload serves the new one, and it does.
func TestServedRootReplaced(t *testing.T) {
	root(t, "to have the kernel's handles")
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	s := b.serve(b.path("srv"))
	b.no(os.RemoveAll(b.path("srv")))
	b.write(b.path("srv", "g"), "text")
	if r := b.must(4, "doctor", s.url); !strings.Contains(r.stdout, "SIGHUP") {
		t.Errorf("doctor does not say what to do:\n%s", r.stdout)
	}
	b.until("the log says what to do", func() bool { // its pipe may be read later than doctor ends
		log := s.log.String()
		return strings.Contains(log, "with SIGHUP what is there now is served") && strings.Contains(log, "code=ESTALE")
	})
	b.no(s.cmd.Process.Signal(syscall.SIGHUP))
	var r *result
	b.until("the reload serves what is there now", func() bool {
		r = b.run("ls", s.url)
		return r.status == 0
	})
	if r.stdout != "g\n" {
		t.Errorf("after a reload:\n%s%s", r.stdout, r.stderr)
	}
}

// asNobody is a run of the command as a user without rights.
func (b *box) asNobody(args ...string) *exec.Cmd {
	b.no(os.MkdirAll(b.path("nobody"), 0o777))
	b.no(os.Chmod(b.path("nobody"), 0o777))
	cmd := b.command(args...)
	cmd.Env = append(cmd.Env, "HOME="+b.path("nobody"), "XDG_STATE_HOME="+b.path("nobody"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// TestSilentReader: a client asks for much and takes nothing. The others are served.
func TestSilentReader(t *testing.T) {
	b := newBox(t)
	dir := b.path("srv")
	b.write(filepath.Join(dir, "large"), string(pattern(1<<20, 1)))
	b.write(filepath.Join(dir, "small"), "small")
	s := b.serve(dir)
	greedy := s.dial(0)
	top := greedy.root(b)
	large, _, err := greedy.lookup(top, "large")
	b.no(err)
	for range 300 {
		// When the server takes no more of it either, enough has been asked.
		b.no(greedy.conn.SetWriteDeadline(time.Now().Add(time.Second)))
		if greedy.send(progNFS, 3, nfsREAD, readArgs(large, 0, 1<<20)) != nil {
			break
		}
	}
	honest := s.dial(0)
	small, _, err := honest.lookup(honest.root(b), "small")
	b.no(err)
	for range 20 {
		data, status, err := honest.read(small, 100)
		if err != nil || status != statusOK || string(data) != "small" {
			t.Fatalf("READ of five bytes beside a silent reader: status %d, %q, %v", status, data, err)
		}
		if status, _, err := honest.nfs(nfsREADDIR, u32(append(u64(opaque(nil, top), 0), make([]byte, 8)...), 4096)); err != nil || status != statusOK {
			t.Fatalf("READDIR beside a silent reader: status %d, %v", status, err)
		}
	}
}

// TestSilentReaderAtTheEnd: a client asks for much and takes nothing. The server ends in good
// order all the same, long before it would cut off calls.
func TestSilentReaderAtTheEnd(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "large"), string(pattern(1<<20, 1)))
	s := b.serve(b.path("srv"), "--drain-timeout", "29s")
	greedy := s.dial(0)
	large, _, err := greedy.lookup(greedy.root(b), "large")
	b.no(err)
	for range 64 {
		b.no(greedy.send(progNFS, 3, nfsREAD, readArgs(large, 0, 1<<20)))
	}
	_, err = greedy.conn.Read(make([]byte, 1)) // the replies have begun
	b.no(err)
	s.stop()
	if s.err != nil {
		t.Errorf("the server ended with %v\n%s", s.err, s.log)
	}
}

// TestStrangersTakeNothing: addresses that no rule admits ask for callbacks and send
// large records slowly. The server does not grow, and others get what they ask for.
func TestStrangersTakeNothing(t *testing.T) {
	b := newBox(t)
	dir := b.path("srv")
	b.write(filepath.Join(dir, "f"), "text")
	s := b.serve(dir, "--allow=127.0.0.1", "--grace=0s")
	honest := s.dial(0)
	top := honest.root(b)
	file, _, err := honest.lookup(top, "f")
	b.no(err)
	if status, err := honest.lock("host", file, "a", 0); err != nil || status != 0 {
		t.Fatalf("LOCK before: status %d, %v", status, err)
	}
	memory, descriptors := s.resident(), s.descriptors()

	var strangers sync.WaitGroup
	for i := range 5 {
		strangers.Go(func() {
			p, err := s.from(fmt.Sprintf("127.0.0.%d", 10+i))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = p.conn.Close() }()
			for n := range 3000 { // NLM4_TEST_MSG, to which the answer is a call
				_ = p.conn.SetWriteDeadline(time.Now().Add(patience / 4))
				if p.send(progNLM, 4, nlmTESTMSG, testMsgArgs(fmt.Sprintf("caller%d-%d", i, n), file)) != nil {
					return // it hangs up: as well
				}
			}
		})
	}
	strangers.Wait()
	// A record that does not come in this time is given up. A client that waits
	// for its memory waits as long.
	const givenUp = 10 * time.Second
	var slow []*peer
	for i := range 130 { // records of 1 MiB, of which little comes
		p, err := s.from(fmt.Sprintf("127.0.0.%d", 10+i%2))
		b.no(err)
		defer func() { _ = p.conn.Close() }()
		slow = append(slow, p)
		head := p.message(progNFS, 3, nfsWRITE, writeArgs(file, 0, fileSync, make([]byte, 1<<20)))
		_, _ = p.conn.Write(head[:9000])
	}
	start := time.Now() // not before they have begun: on a busy machine that takes its time
	if status, err := honest.write(file, 0, fileSync, pattern(1<<20, 7)); err != nil || status != statusOK {
		t.Errorf("an honest WRITE beside %d slow records: status %d, %v", len(slow), status, err)
	}
	if took := time.Since(start); took >= givenUp {
		t.Errorf("an honest WRITE was answered %v after %d slow records had begun", took, len(slow))
	}
	for i := range 50 {
		if status, err := honest.lock(fmt.Sprintf("host%d", i), file, "a", uint64(10+i)); err != nil || status != 0 {
			t.Fatalf("LOCK of client %d: status %d, %v", i, status, err)
		}
	}
	if grown := s.resident() - memory; grown > 64<<20 {
		t.Errorf("strangers made the server grow by %d MiB", grown>>20)
	}
	if grown := s.descriptors() - descriptors; grown > 400 {
		t.Errorf("strangers made the server open %d descriptors", grown)
	}
}

// testMsgArgs are those of NLM's TEST_MSG.
func testMsgArgs(caller string, file []byte) []byte {
	args := u32(opaque(nil, []byte("cookie")), 1)
	args = opaque(opaque(opaque(args, []byte(caller)), file), []byte("owner"))
	return u64(u32(args, 1), 0, 1)
}

// TestStrangersForgetNothing: a change is made once, however often it is sent, also
// when thousands of addresses that no rule admits have sent calls in between.
func TestStrangersForgetNothing(t *testing.T) {
	b := newBox(t)
	dir := b.path("srv")
	b.no(os.Mkdir(dir, 0o777))
	s := b.serve(dir, "--allow=127.0.0.1")
	honest := s.dial(0)
	top := honest.root(b)
	call := honest.message(progNFS, 3, nfsCREATE, u32(dirop(top, "once"), 1, 1, 0o644, 0, 0, 0, 0, 0))
	for round := range 2 {
		if round > 0 {
			honest = s.dial(0) // the connection was lost, and the call is sent again
		}
		_, err := honest.conn.Write(call)
		b.no(err)
		r, err := honest.receive()
		b.no(err)
		if status := r.u32(); status != statusOK {
			t.Fatalf("CREATE, sent %d times: status %d", round+1, status)
		}
		if round > 0 {
			break
		}
		b.no(honest.conn.Close())
		for i := range 4200 {
			p, err := s.from(fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250))
			b.no(err)
			_, _, _ = p.lookup([]byte("garbage"), "x")
			_ = p.send(progNFS, 3, nfsREMOVE, dirop([]byte("garbage"), "x"))
			_, _ = p.receive()
			_ = p.conn.Close()
		}
	}
}

// TestStrangersSeeNothing: addresses that no rule admits are not told what is exported,
// to whom, who has mounted it, and which programs there are. Others are, also from a
// port by which they could not mount.
func TestStrangersSeeNothing(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	lists := []struct{ prog, vers, proc uint32 }{{progMount, 3, 5}, {progMount, 1, 5}, {100000, 2, 4}, {100000, 3, 4}, {100000, 4, 4}}
	for _, flags := range [][]string{{"--allow=127.0.0.1"}, {"--allow=127.0.0.1", "--secure"}} {
		s, ask := b.serve(b.path("srv"), flags...), lists
		if len(flags) == 1 {
			s.dial(0).root(b)
			ask = append(ask, struct{ prog, vers, proc uint32 }{progMount, 3, 2}) // who has mounted what
		}
		for address, told := range map[string]bool{"127.0.0.1": true, "127.0.0.9": false} {
			for _, x := range ask {
				p, err := s.from(address)
				b.no(err)
				r, err := p.call(x.prog, x.vers, x.proc, nil)
				b.no(err)
				b.no(p.conn.Close())
				if something := r.u32() != 0; something != told {
					t.Errorf("%v: %s asks for program %d, version %d, procedure %d, and is told something: %v, want %v",
						flags, address, x.prog, x.vers, x.proc, something, told)
				}
			}
		}
	}
}

// TestUploadedProgramRuns: a file that was written and committed is no longer open
// for writing at the server, seconds later, and one that was removed gives its space
// back.
func TestUploadedProgramRuns(t *testing.T) {
	b := newBox(t)
	dir := b.path("srv")
	b.no(os.Mkdir(dir, 0o777))
	s := b.serve(dir)
	p := s.dial(uint32(os.Getuid()))
	file, status, err := p.create(p.root(b), "program", 0o755)
	if err != nil || status != statusOK {
		t.Fatalf("CREATE: status %d, %v", status, err)
	}
	if status, err := p.write(file, 0, unstable, []byte("#!/bin/sh\nexit 0\n")); err != nil || status != statusOK {
		t.Fatalf("WRITE: status %d, %v", status, err)
	}
	if status, _, err := p.nfs(nfsCOMMIT, u32(u64(opaque(nil, file), 0), 0)); err != nil || status != statusOK {
		t.Fatalf("COMMIT: status %d, %v", status, err)
	}
	b.until("the uploaded program runs", func() bool { return exec.Command(filepath.Join(dir, "program")).Run() == nil })
	b.no(os.Remove(filepath.Join(dir, "program")))
	b.until("the removed file is closed", func() bool {
		list, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.cmd.Process.Pid))
		b.no(err)
		for _, fd := range list {
			if to, err := os.Readlink(fd); err == nil && to == filepath.Join(dir, "program")+" (deleted)" {
				return false
			}
		}
		return true
	})
}

// TestGreedyLocks: one client's locks and files that it has not committed leave
// descriptors for others.
func TestGreedyLocks(t *testing.T) {
	b := newBox(t)
	dir := b.path("srv")
	const files = 300
	for i := range files {
		b.write(filepath.Join(dir, fmt.Sprint(i)), "text")
	}
	b.no(os.Chmod(dir, 0o777))
	s := b.serve(dir, "--max-open-files=128", "--grace=0s")
	uid := uint32(os.Getuid())
	greedy := s.dial(uid)
	top := greedy.root(b)
	for i := range files {
		file, _, err := greedy.lookup(top, fmt.Sprint(i))
		b.no(err)
		if i%2 == 0 {
			_, err = greedy.lock("greedy", file, "a", 0)
		} else {
			_, err = greedy.write(file, 0, unstable, []byte("new"))
		}
		b.no(err)
	}
	honest := s.dial(uid)
	for i := range files {
		file, _, err := honest.lookup(top, fmt.Sprint(i))
		b.no(err)
		// Busy is an answer that a client asks again for; not for ever.
		status, end := uint32(statusJUKE), time.Now().Add(20*time.Second)
		for status == statusJUKE && time.Now().Before(end) {
			_, status, err = honest.read(file, 10)
			b.no(err)
		}
		if status != statusOK {
			t.Fatalf("READ of file %d: status %d", i, status)
		}
	}
}

// TestLocksForAll: three clients, one after the other, take as many locks as they can
// have, of a server that may open few files. The next one has room for its own.
func TestLocksForAll(t *testing.T) {
	b := newBox(t)
	dir := b.path("srv")
	const files = 80
	for i := range files {
		b.write(filepath.Join(dir, fmt.Sprint(i)), "text")
	}
	s := b.serve(dir, "--max-open-files=64", "--grace=0s")
	for i, want := range []int{16, 6, 2, 1} {
		address := fmt.Sprint("127.0.0.", 6+i)
		p, err := s.from(address)
		b.no(err)
		defer func() { _ = p.conn.Close() }()
		p.uid = uint32(os.Getuid())
		top, granted := p.root(b), 0
		for i := range files {
			file, _, err := p.lookup(top, fmt.Sprint(i))
			b.no(err)
			status, err := p.lock("client", file, "a", uint64(address[len(address)-1]))
			b.no(err)
			if status == 0 {
				granted++
			}
		}
		if granted != want {
			t.Errorf("%s has got %d locks, want %d: a quarter of half of the files is kept for those who have few", address, granted, want)
		}
	}
}

// TestReloadToAnotherDirectory: the directory behind an export is another after a
// reload. Handles of the old one are stale, and nothing is written there.
func TestReloadToAnotherDirectory(t *testing.T) {
	b := newBox(t)
	b.write(b.path("old", "f"), "old")
	b.write(b.path("new", "f"), "new")
	b.no(os.Chmod(b.path("old", "f"), 0o666))
	config := b.path("nfsbox.toml")
	b.write(config, fmt.Sprintf("[[export]]\npath = \"/\"\ndir = %q\n", b.path("old")))
	state, err := os.MkdirTemp(b.dir, ".served-")
	b.no(err)
	s := b.serveWith(state, "127.0.0.1:0", "-c", config, "--localio=off")
	p := s.dial(uint32(os.Getuid()))
	file, status, err := p.lookup(p.root(b), "f")
	if err != nil || status != statusOK {
		t.Fatalf("LOOKUP: status %d, %v", status, err)
	}
	b.write(config, fmt.Sprintf("[[export]]\npath = \"/\"\ndir = %q\n", b.path("new")))
	s.signal(syscall.SIGHUP)
	fresh := func() []byte {
		h, status, err := p.lookup(p.root(b), "f")
		if err != nil || status != statusOK {
			return nil
		}
		data, _, err := p.read(h, 10)
		b.no(err)
		return data
	}
	b.until("the reload", func() bool { return bytes.Equal(fresh(), []byte("new")) })
	if status, err := p.write(file, 0, fileSync, []byte("XXX")); err == nil && status == statusOK {
		t.Errorf("WRITE by a handle of the old directory: OK; it holds %q, the new one %q", b.text(b.path("old", "f")), b.text(b.path("new", "f")))
	}
	if data, status, err := p.read(file, 10); err == nil && status == statusOK {
		t.Errorf("READ by a handle of the old directory: %q", data)
	}
}

// TestReplacedDirectory: the exported directory is moved away and made anew. After a
// reload clients work on the new one.
func TestReplacedDirectory(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "old")
	s := b.serve(b.path("srv"))
	b.no(os.Rename(b.path("srv"), b.path("away")))
	b.write(b.path("srv", "f"), "new")
	s.signal(syscall.SIGHUP)
	b.until("the new directory is served", func() bool { return b.run("cat", s.url+"f").stdout == "new" })
}

// TestDirectoryMadeAnew: a server starts over a directory that was removed and made
// again since it served it last.
func TestDirectoryMadeAnew(t *testing.T) {
	b := newBox(t)
	for _, handles := range []string{"auto", "map"} {
		dir, state := b.path("srv-"+handles), b.path(".state-"+handles)
		b.no(os.MkdirAll(state, 0o700))
		b.write(filepath.Join(dir, "f"), "one")
		s := b.serveWith(state, "127.0.0.1:0", dir, "--localio=off", "--handles="+handles)
		b.must(0, "cat", s.url+"f")
		s.stop()
		b.no(os.RemoveAll(dir))
		b.write(b.path("takes the inode number"), "")
		b.write(filepath.Join(dir, "f"), "two")
		s = b.serveWith(state, "127.0.0.1:0", dir, "--localio=off", "--handles="+handles)
		if got := b.must(0, "cat", s.url+"f").stdout; got != "two" {
			t.Errorf("--handles=%s: %q", handles, got)
		}
		s.stop()
	}
}

// TestHandleOfWhatIsGone: the handle of a removed file never comes to mean another,
// though that may get its number, on any file system.
func TestHandleOfWhatIsGone(t *testing.T) {
	for _, kind := range []string{"disk", "tmpfs", "overlay"} {
		t.Run(kind, func(t *testing.T) {
			b := newBox(t)
			dir := b.path("srv")
			b.no(os.Mkdir(dir, 0o755))
			switch kind {
			case "tmpfs":
				root(t, "to mount")
				b.mount("tmpfs", dir, "tmpfs", "")
			case "overlay":
				root(t, "to mount")
				for _, layer := range []string{"lower", "upper", "work"} {
					b.no(os.MkdirAll(b.path("layers", layer), 0o755))
				}
				b.mount("overlay", dir, "overlay", fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", b.path("layers")))
			}
			s := b.serve(dir, "--squash=none")
			p := s.dial(0)
			top := p.root(b)
			var stale [][]byte
			for i := range 200 {
				name := filepath.Join(dir, fmt.Sprint("victim", i))
				b.write(name, "old")
				handle, status, err := p.lookup(top, filepath.Base(name))
				if err != nil || status != statusOK {
					t.Fatalf("LOOKUP: status %d, %v", status, err)
				}
				b.no(os.Remove(name))
				if _, status, err := p.getattr(handle); err != nil || status != statusSTALE {
					t.Fatalf("GETATTR of what was removed: status %d, %v", status, err)
				}
				stale = append(stale, handle)
			}
			for i := range 200 { // which may get the numbers of the removed ones
				b.write(filepath.Join(dir, fmt.Sprint("secret", i)), "secret")
			}
			alive, overwritten := 0, 0
			for _, handle := range stale {
				if status, err := p.write(handle, 0, fileSync, []byte("overwritten")); err != nil || status != statusSTALE {
					alive++
				}
				if _, status, err := p.getattr(handle); err != nil || status != statusSTALE {
					alive++
				}
			}
			for i := range 200 {
				if b.text(filepath.Join(dir, fmt.Sprint("secret", i))) != "secret" {
					overwritten++
				}
			}
			if alive > 0 || overwritten > 0 {
				t.Errorf("of 400 calls by handles that were stale %d were answered otherwise; %d other files were overwritten", alive, overwritten)
			}
		})
	}
}

// TestOperatorDropsClient: the server's operator sees the clients and their locks,
// and frees what one that is gone has left. Other users of the host may not.
func TestOperatorDropsClient(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	b.no(os.Chmod(b.path("srv", "f"), 0o666))
	s := b.serve(b.path("srv"), "--grace=0s")
	gone, err := s.from("127.0.0.9")
	b.no(err)
	defer func() { _ = gone.conn.Close() }()
	gone.uid = uint32(os.Getuid())
	file, _, err := gone.lookup(gone.root(b), "f")
	b.no(err)
	if status, err := gone.lock("gone", file, "a", 0); err != nil || status != 0 {
		t.Fatalf("LOCK: status %d, %v", status, err)
	}
	next := s.dial(uint32(os.Getuid()))
	if status, err := next.lock("next", file, "b", 0); err != nil || status != 1 {
		t.Fatalf("LOCK of what is locked: status %d, %v; want denied", status, err)
	}
	if r := b.must(0, "ctl", "clients", "--json", "--state-dir", s.state); !strings.Contains(r.stdout, `"127.0.0.9"`) {
		t.Errorf("the client is not listed: %s", r.stdout)
	}
	if r := b.must(0, "ctl", "locks", "127.0.0.9", "--json", "--state-dir", s.state); !strings.Contains(r.stdout, `"type":"lock"`) {
		t.Errorf("its lock is not listed: %s", r.stdout)
	}
	if os.Geteuid() == 0 {
		if r := b.finish(b.asNobody("ctl", "drop", "127.0.0.9", "--state-dir", s.state)); r.status == 0 {
			t.Error("nobody has dropped a client")
		}
	}
	b.must(0, "ctl", "drop", "127.0.0.9", "--state-dir", s.state)
	if status, err := next.lock("next", file, "b", 0); err != nil || status != 0 {
		t.Errorf("LOCK after the drop: status %d, %v", status, err)
	}
	b.must(2, "ctl", "drop", "127.0.0.77", "--state-dir", s.state)
	s.stop()
	b.must(4, "ctl", "clients", "--state-dir", s.state)
}
