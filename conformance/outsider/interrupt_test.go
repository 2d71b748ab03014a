//go:build linux

package outsider

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dying waits for a command that has begun until it has made temporaries in dir, then
// has the server die, and interrupts the command. That ends within patience: a server is waited for for ever.
func (b *box) dying(r *running, dir string, die func(), sig os.Signal) (status int) {
	b.Helper()
	b.until("the copy has temporaries", func() bool {
		list, _ := os.ReadDir(dir) // it is not there at first
		for _, e := range list {
			if strings.HasPrefix(e.Name(), ".nfsbox-") && strings.HasSuffix(e.Name(), ".tmp") { // of a file
				return true
			}
		}
		return false
	})
	die()
	b.no(r.Process.Signal(sig))
	return r.status()
}

// heeds skips a test of a signal that this process, and so what it starts, ignores, as
// below nohup(1).
func heeds(t *testing.T, sig os.Signal) {
	t.Helper()
	if signal.Ignored(sig) {
		t.Skipf("NOT TESTED: the tests run with %v ignored", sig)
	}
}

// slowDisk is a proxy of s that lets little through, so that a copy lasts.
func (b *box) slowDisk(s *server) *proxy {
	return b.proxy(s, func(p *proxy) { p.delay = 50 * time.Millisecond })
}

// TestInterruptedBesideDeadServer: a copy is interrupted while its server does not
// answer. It ends soon, names what it could not remove, and says how to go on; and the
// command that it gives does go on, and removes that.
func TestInterruptedBesideDeadServer(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			heeds(t, sig)
			b := newBox(t)
			for i := range 200 {
				b.write(b.path("it's", fmt.Sprint(i)), string(pattern(100_000, byte(i))))
			}
			b.no(os.Mkdir(b.path("srv"), 0o755))
			s := b.serve(b.path("srv"))
			p := b.slowDisk(s)
			r := b.begin("cp", "-r", "--job", "j", b.path("it's"), p.url()+"dst")
			status := b.dying(r, b.path("srv", "dst"), func() { s.signal(syscall.SIGSTOP) }, sig)
			s.signal(syscall.SIGCONT)
			text := r.err.String()
			if status != 130 {
				t.Errorf("exit status %d\n%s", status, text)
			}
			if strings.Contains(text, "context canceled") || !strings.Contains(text, "interrupted") {
				t.Errorf("it says\n%s", text)
			}
			if !strings.Contains(text, "note: temporary: .nfsbox-") || !strings.Contains(text, "temporaries may have stayed in "+p.url()+"dst") {
				t.Errorf("what has stayed is not told\n%s", text)
			}
			_, line, ok := strings.Cut(text, "to go on from here: ")
			if line, _, _ = strings.Cut(line, "\n"); !ok {
				t.Fatalf("it does not say how to go on\n%s", text)
			}
			sh := b.command()
			sh.Path, sh.Args = "/bin/sh", []string{"sh", "-c", line}
			if again := b.finish(sh); again.status != 0 {
				t.Errorf("%s: exit status %d\n%s", line, again.status, again.stderr)
			}
			b.same(b.path("it's"), b.path("srv", "dst"))
		})
	}
}

// TestInterruptedBesideLiveServer: one whose server answers, however late, cleans up.
func TestInterruptedBesideLiveServer(t *testing.T) {
	b := newBox(t)
	for i := range 200 {
		b.write(b.path("src", fmt.Sprint(i)), string(pattern(100_000, byte(i))))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s := b.serve(b.path("srv"))
	p := b.slowDisk(s)
	r := b.begin("cp", "-r", b.path("src"), p.url()+"dst")
	status := b.dying(r, b.path("srv", "dst"), func() {}, os.Interrupt)
	text := r.err.String()
	if status != 130 || strings.Contains(text, "temporar") || strings.Contains(text, "context canceled") {
		t.Errorf("exit status %d\n%s", status, text)
	}
	for _, name := range b.names(b.path("srv", "dst")) {
		if strings.Contains(name, ".nfsbox-") {
			t.Errorf("left behind: %s", name)
		}
	}
}

// TestSecondSignal: a command cannot end, as nobody reads what it prints. The second
// signal of a kind ends it at once, as that signal ends a program.
func TestSecondSignal(t *testing.T) {
	b := newBox(t)
	b.write(b.path("large"), string(pattern(4<<20, 1)))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		heeds(t, sig)
		r, w, err := os.Pipe()
		b.no(err)
		cmd := b.command("cat", b.path("large"))
		cmd.Stdout = w
		b.no(cmd.Start())
		b.no(w.Close())
		var first [1]byte
		_, err = r.Read(first[:]) // the command has begun to print, and knows its signals
		b.no(err)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		b.no(cmd.Process.Signal(sig))
		b.until(sig.String()+" ends it", func() bool {
			_ = cmd.Process.Signal(sig) // it may have ended
			return len(ended) > 0
		})
		if err := <-ended; err == nil {
			t.Errorf("%v twice: status 0", sig)
		}
		b.no(r.Close())
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !status.Signaled() || status.Signal() != sig {
			t.Errorf("%v twice: %v", sig, cmd.ProcessState)
		}
	}
}

// TestKilledJobOfOneFile: the copy of one file is killed. The same job, begun again,
// removes what was left of it.
func TestKilledJobOfOneFile(t *testing.T) {
	b := newBox(t)
	b.write(b.path("f"), string(pattern(8<<20, 1)))
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := b.slowDisk(b.serve(b.path("srv")))
	args := []string{"cp", "--job", "one", b.path("f"), p.url()}
	for _, where := range []string{"", "g"} {
		args[3], args[4] = b.path("f"), p.url()+where
		args[2] = "one" + where
		r := b.begin(args...)
		status := b.dying(r, b.path("srv"), func() {}, syscall.SIGKILL)
		if status != -1 || len(b.names(b.path("srv"))) == 0 {
			t.Fatalf("exit status %d, and nothing is left", status)
		}
		b.must(0, args...)
		for _, name := range b.names(b.path("srv")) {
			if strings.Contains(name, ".nfsbox-") {
				t.Errorf("left behind: %s", name)
			}
		}
	}
}

// TestInterruptedWithoutRecord: a copy without --job, and without a directory for records, is
// interrupted after it has made its DEST. The command that it then gives copies all to the same
// place, and not into it.
func TestInterruptedWithoutRecord(t *testing.T) {
	heeds(t, os.Interrupt)
	b := newBox(t)
	for i := range 200 {
		b.write(b.path("it's", fmt.Sprint(i)), string(pattern(100_000, byte(i))))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	b.write(b.path(".state"), "a file")
	p := b.slowDisk(b.serve(b.path("srv")))
	r := b.begin("cp", "-r", "--no-progress", b.path("it's"), p.url()+"dst")
	status := b.dying(r, b.path("srv", "dst"), func() {}, os.Interrupt)
	_, line, ok := strings.Cut(r.err.String(), "to the same place: ")
	if line, _, _ = strings.Cut(line, "\n"); !ok || status != 130 || !strings.Contains(line, " --job ") {
		t.Fatalf("exit status %d, and it does not say how to go on\n%s", status, r.err)
	}
	b.no(os.Remove(b.path(".state")))
	if !strings.Contains(r.err.String(), "XDG_STATE_HOME") || strings.Count(r.err.String(), "no record is kept") != 1 {
		t.Errorf("the way out is not said, or not once:\n%s", r.err)
	}
	sh := b.command()
	sh.Path, sh.Args = "/bin/sh", []string{"sh", "-c", line}
	if again := b.finish(sh); again.status != 0 {
		t.Errorf("%s: exit status %d\n%s", line, again.status, again.stderr)
	}
	b.same(b.path("it's"), b.path("srv", "dst"))
}

// TestInterruptedWhileConnecting: what is interrupted before its server has said a word ends
// with the status of interruptions, and does not say that the server cannot be reached.
func TestInterruptedWhileConnecting(t *testing.T) {
	heeds(t, syscall.SIGINT)
	b := newBox(t)
	b.write(b.path("f"), "text")
	for _, args := range [][]string{
		{"ls", "URL"}, {"stat", "URL"}, {"cat", "URL"}, {"cp", "URL", b.path("to")}, {"cp", b.path("f"), "URL"}, {"verify", "URL", b.dir},
		{"verify", b.dir, "URL"}, {"exports", "URL"}, {"doctor", "URL"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0") // where nobody says a word
		b.no(err)
		for i := range args {
			args[i] = strings.Replace(args[i], "URL", fmt.Sprintf("nfs://%s/e/f", l.Addr()), 1)
		}
		r := b.begin(args...)
		conn, err := l.Accept()
		b.no(err)
		b.no(r.Process.Signal(syscall.SIGINT))
		if status := r.status(); status != 130 || strings.Contains(r.err.String(), "cannot be reached") {
			t.Errorf("%q: exit status %d\n%s", args, status, r.err)
		}
		_, _ = conn.Close(), l.Close()
	}
}

// TestInterruptedDirectoryIsClosed: a copy is interrupted in a directory that it has made.
// It says that others cannot enter it, until the copy has gone on.
func TestInterruptedDirectoryIsClosed(t *testing.T) {
	heeds(t, os.Interrupt)
	b := newBox(t)
	for i := range 200 {
		b.write(b.path("src", "sub", fmt.Sprint(i)), string(pattern(100_000, byte(i))))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := b.slowDisk(b.serve(b.path("srv")))
	args := []string{"cp", "-r", "--job", "j", b.path("src"), p.url() + "dst"}
	r := b.begin(args...)
	status := b.dying(r, b.path("srv", "dst", "sub"), func() {}, os.Interrupt)
	sub := b.path("srv", "dst", "sub")
	if text := r.err.String(); status != 130 || b.bits(sub) != 0o700 || !strings.Contains(text, "mode 0700 until ") {
		t.Errorf("exit status %d, mode %o:\n%s", status, b.bits(sub), text)
	}
	b.must(0, args...)
	if b.bits(sub) != b.bits(b.path("src", "sub")) {
		t.Errorf("mode %o in the end", b.bits(sub))
	}
}
