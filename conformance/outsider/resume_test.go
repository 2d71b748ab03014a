//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// signalled begins the command, and sends it sig when so many bytes have come back by a proxy,
// which is made with hook. Nothing more comes until hold is closed.
func (b *box) signalled(sig syscall.Signal, bytes int64, hold chan struct{}) (hook func(*proxy), begin func(args ...string) *running, sent chan struct{}) {
	begun, sent := make(chan *running, 1), make(chan struct{})
	hook = func(p *proxy) {
		p.back = b.whenPassed(bytes, func() {
			r := <-begun
			if err := r.Process.Signal(sig); err != nil {
				b.Error(err)
			}
			close(sent)
			<-hold
		})
	}
	begin = func(args ...string) *running {
		b.Helper()
		r := b.begin(args...)
		begun <- r
		return r
	}
	return hook, begin, sent
}

// halfCopy begins cp -r of a served tree to "copy", in the box's directory, and breaks it off
// by sig when a part has come. again are the same arguments.
func (b *box) halfCopy(sig syscall.Signal) (again []string, text string) {
	b.Helper()
	for i := range 200 {
		b.write(b.path("srv", "export", fmt.Sprint(i%5), fmt.Sprint(i)), string(pattern(50_000, byte(i))))
	}
	b.no(os.Chtimes(b.path("srv", "export"), b.before(), b.before()))
	hold := make(chan struct{})
	hook, begin, sent := b.signalled(sig, 1_500_000, hold)
	p := b.proxy(b.serve(b.path("srv")), hook)
	again = []string{"cp", "-r", "--parallel=8", p.url() + "export", "./copy"}
	r := begin(again...)
	<-sent
	want := 130
	if sig == syscall.SIGKILL {
		want = -1
	}
	status := r.status()
	close(hold)
	if status != want {
		b.Fatalf("%v: exit status %d\n%s", sig, status, r.err)
	}
	return again, r.err.String()
}

// unfinished are the records that are kept.
func (b *box) unfinished() []string {
	list, _ := os.ReadDir(b.path(".state", "nfsbox", "unfinished")) // it may not be there
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestSameCommandGoesOn: a copy is broken off, and the same command is run again. It goes on in
// the directory that it had made, with the times that the copy was to have, and says so. When it
// is done nothing is left of that, and the command means what it means to cp(1).
func TestSameCommandGoesOn(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			heeds(t, sig)
			b := newBox(t)
			again, text := b.halfCopy(sig)
			if sig != syscall.SIGKILL && !strings.Contains(text, "to go on from here: "+b.bin+" "+strings.Join(again, " ")+"\n") {
				t.Errorf("it does not say how to go on:\n%s", text)
			}
			if len(b.unfinished()) != 1 {
				t.Fatalf("records: %q", b.unfinished())
			}
			r := b.must(0, append(slices.Clone(again), "--json")...)
			skipped := r.count(b, "skipped")
			if !strings.Contains(r.stdout, "it goes on with the copy that was broken off") || sig != syscall.SIGKILL && skipped == 0 {
				t.Errorf("it did not go on:\n%s", r.stdout)
			}
			b.same(b.path("srv", "export"), b.path("copy"))
			if info, err := os.Stat(b.path("copy")); err != nil || !info.ModTime().Equal(b.before()) {
				t.Errorf("the copy's own time: %v, %v", info.ModTime(), err)
			}
			if len(b.unfinished()) > 0 {
				t.Errorf("records stay: %q", b.unfinished())
			}
			b.must(0, again...)
			b.same(b.path("srv", "export"), b.path("copy", "export"))
		})
	}
}

// TestOtherCommandBeginsAnew: after an interruption a command that means something else, or
// finds another DEST, does not go on. It copies as cp(1) would.
func TestOtherCommandBeginsAnew(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *box)
		flag   string
		to     string
	}{
		"--no-resume":      {flag: "--no-resume", to: "copy/export"},
		"another option":   {flag: "--no-owner", to: "copy/export"},
		"DEST is gone":     {change: func(b *box) { b.no(os.RemoveAll(b.path("copy"))) }, to: "copy"},
		"DEST is another":  {change: func(b *box) { b.no(os.Rename(b.path("copy"), b.path("old"))); b.no(os.Mkdir(b.path("copy"), 0o755)) }, to: "copy/export"},
		"DEST was emptied": {change: func(b *box) { b.no(os.RemoveAll(b.path("copy"))); b.no(os.Mkdir(b.path("copy"), 0o755)) }, to: "copy/export"},
		"DEST is a link": {change: func(b *box) {
			b.no(os.Rename(b.path("copy"), b.path("old")))
			b.no(os.Symlink("old", b.path("copy")))
		}, to: "copy/export"},
		"a broken record": {change: func(b *box) {
			b.no(os.WriteFile(b.path(".state", "nfsbox", "unfinished", b.unfinished()[0], "begun"), []byte("{"), 0o600))
		}, to: "copy/export"},
		"an old record": {change: func(b *box) {
			for _, name := range []string{"begun", "copied"} {
				b.no(os.Chtimes(b.path(".state", "nfsbox", "unfinished", b.unfinished()[0], name), b.before(), b.before()))
			}
		}, to: "copy/export"},
	} {
		t.Run(name, func(t *testing.T) {
			heeds(t, os.Interrupt)
			b := newBox(t)
			again, _ := b.halfCopy(syscall.SIGINT)
			if c.change != nil {
				c.change(b)
			}
			args := append(slices.Clone(again), "--json")
			if c.flag != "" {
				args = append(args, c.flag)
			}
			if r := b.must(0, args...); r.count(b, "skipped") > 0 || r.count(b, "files") != 200 {
				t.Errorf("it went on:\n%s", r.stdout)
			}
			b.same(b.path("srv", "export"), b.path(c.to))
		})
	}
}

// TestInterruptedIntoDirectory: a copy into a directory goes on there; the files that somebody
// has changed meanwhile are copied again.
func TestInterruptedIntoDirectory(t *testing.T) {
	heeds(t, os.Interrupt)
	b := newBox(t)
	b.no(os.Mkdir(b.path("copy"), 0o755))
	again, _ := b.halfCopy(syscall.SIGINT)
	copied, err := filepath.Glob(b.path("copy", "export", "*", "[0-9]*"))
	b.no(err)
	b.no(os.WriteFile(copied[0], []byte("changed"), 0o644))
	b.no(os.Remove(copied[1]))
	if r := b.must(0, append(again, "--json")...); r.count(b, "skipped") == 0 {
		t.Errorf("it did not go on:\n%s", r.stdout)
	}
	b.same(b.path("srv", "export"), b.path("copy", "export"))
}

// TestSameCommandTwiceAtOnce: the same command is begun again while the first is under way. It is refused, names the
// process, and leaves record and DEST alone. Only with --no-resume it does what it does without a record.
func TestSameCommandTwiceAtOnce(t *testing.T) {
	for _, verb := range []string{"cp", "sync"} {
		t.Run(verb, func(t *testing.T) { newBox(t).twiceAtOnce(verb) })
	}
}

func (b *box) twiceAtOnce(verb string) {
	b.write(b.path("srv", "export", "f"), string(pattern(4<<20, 1)))
	hold := make(chan struct{})
	close(hold)
	hook, begin, stopped := b.signalled(syscall.SIGSTOP, 1_000_000, hold)
	p := b.proxy(b.serve(b.path("srv")), hook)
	args := []string{verb, p.url() + "export", b.path("copy")}
	if verb == "cp" {
		args = append(args, "-r")
	}
	r := begin(args...)
	<-stopped
	before := b.names(b.path("copy"))
	again := b.run(args...)
	if after := b.names(b.path("copy")); !slices.Equal(before, after) {
		b.Errorf("in DEST are %q, and then %q", before, after)
	}
	said := []string{"is under way", fmt.Sprintf("process %d", r.Process.Pid), "--no-resume"}
	if again.status != 1 || slices.ContainsFunc(said, func(what string) bool { return !strings.Contains(again.stderr, what) }) {
		b.Errorf("exit status %d\n%s", again.status, again.stderr)
	}
	records := b.unfinished()
	b.must(0, append(args, "--no-resume")...)
	b.no(r.Process.Signal(syscall.SIGCONT))
	if status := r.status(); status != 0 || len(records) != 1 || len(b.unfinished()) != 0 {
		b.Errorf("the first one: exit status %d, records %q and then %q\n%s", status, records, b.unfinished(), r.err)
	}
	if verb == "cp" { // as cp(1) would
		b.same(b.path("srv", "export"), b.path("copy", "export"))
		b.no(os.RemoveAll(b.path("copy", "export")))
	}
	b.sameText(b.path("srv", "export", "f"), b.path("copy", "f"))
}

// TestSameCommandWaits: the same copy is begun again, and the first ends well while the second waits for its record. What DEST means to
// the second has changed meanwhile, so it copies nothing.
func TestSameCommandWaits(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "export", "f"), string(pattern(4<<20, 1)))
	hold := make(chan struct{})
	close(hold)
	hook, begin, stopped := b.signalled(syscall.SIGSTOP, 1_000_000, hold)
	args := []string{"cp", "-r", b.proxy(b.serve(b.path("srv")), hook).url() + "export", b.path("copy")}
	first := begin(args...)
	<-stopped
	second, record := b.begin(args...), b.unfinished()
	b.until("the second has opened the record", func() bool {
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", second.Process.Pid)) // the pattern is well formed
		return slices.ContainsFunc(open, func(fd string) bool {
			to, err := os.Readlink(fd)
			return err == nil && len(record) == 1 && filepath.Base(to) == record[0]
		})
	})
	b.no(first.Process.Signal(syscall.SIGCONT))
	if status := first.status(); status != 0 {
		t.Errorf("the first: exit status %d\n%s", status, first.err)
	}
	if status := second.status(); status != 1 || !strings.Contains(second.err.String(), "has ended well") {
		t.Errorf("the second: exit status %d\n%s", status, second.err)
	}
	b.same(b.path("srv", "export"), b.path("copy"))
}

// TestNoStateDirectory: where no record can be kept, the copy is made, and says so, and what the same command would do then.
func TestNoStateDirectory(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "f"), "text")
	b.write(b.path(".state"), "a file")
	r := b.must(0, "cp", "-r", b.path("src"), b.path("copy"))
	if !strings.Contains(r.stderr, "note: no record is kept") || !strings.Contains(r.stderr, "receives SOURCE under its own name") {
		t.Errorf("it does not say so:\n%s", r.stderr)
	}
	b.same(b.path("src"), b.path("copy"))
}

// TestInterruptedVerify: a comparison that is interrupted says so, and which command compares
// all again.
func TestInterruptedVerify(t *testing.T) {
	heeds(t, os.Interrupt)
	b := newBox(t)
	for i := range 100 {
		b.write(b.path("srv", fmt.Sprint(i)), string(pattern(100_000, byte(i))))
	}
	b.must(0, "cp", "-r", b.path("srv"), b.path("copy"))
	hold := make(chan struct{})
	hook, begin, sent := b.signalled(syscall.SIGINT, 1_000_000, hold)
	args := []string{"verify", "--parallel=4", b.proxy(b.serve(b.path("srv")), hook).url(), b.path("copy")}
	r := begin(args...)
	<-sent
	status, text := r.status(), r.err.String()
	close(hold)
	if status != 130 || strings.Contains(text, "the same: ") || !strings.Contains(text, "to compare all again: "+b.bin+" "+strings.Join(args, " ")+"\n") {
		t.Errorf("exit status %d\n%s", status, text)
	}
}
