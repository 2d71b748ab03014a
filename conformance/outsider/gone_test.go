//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// whenPassed calls lose once so many bytes have passed.
func (b *box) whenPassed(bytes int64, lose func()) func() change {
	var seen atomic.Int64
	once := sync.OnceFunc(lose)
	return func() change {
		return func(data []byte) []byte {
			if seen.Add(int64(len(data))) > bytes {
				once()
			}
			return data
		}
	}
}

// lostSource checks how a job ends whose source is lost as a whole: each of stderr and
// the events says so once.
func lostSource(t *testing.T, status int, events, stderr string) {
	t.Helper()
	const gone = "the source is gone"
	text := events + stderr
	told := 0
	for line := range strings.Lines(events) {
		if strings.Contains(line, gone) {
			told++
		}
	}
	if status != 4 || told != 1 || strings.Count(stderr, gone) != 1 {
		t.Errorf("exit status %d\n%.3000s", status, text)
	}
	if strings.Contains(text, `"kind":"vanished"`) || strings.Contains(text, "note: vanished") {
		t.Errorf("it is told of items that have vanished:\n%.3000s", text)
	}
}

// TestOtherDirectoryServed: a server is killed, and begun again with another directory in
// place of the one that is being copied or compared. That most of the tree is not there any
// more is no success; when the directory is back, the job goes on.
func TestOtherDirectoryServed(t *testing.T) {
	for _, verb := range []string{"cp", "verify"} {
		t.Run(verb, func(t *testing.T) {
			b := newBox(t)
			for i := range 300 {
				b.write(b.path("srv", "src", fmt.Sprint(i%20), fmt.Sprint(i)), string(pattern(40_000, byte(i))))
				b.write(b.path("other", "src", fmt.Sprint("other", i)), "another file")
			}
			b.must(0, "cp", "-r", b.path("srv"), b.path("same"))
			s := b.serveAt(b.port(), b.path("srv"))
			lost := make(chan struct{})
			p := b.proxy(s, func(p *proxy) {
				p.back = b.whenPassed(4_000_000, func() { s.kill(); close(lost) })
			})
			args := []string{"cp", "-r", "--json", "--job", "j", p.url(), b.path("copy")}
			if verb == "verify" {
				args = []string{"verify", "--json", p.url(), b.path("same")}
			}
			r := b.begin(args...)
			<-lost
			other := b.serveWith(s.state, fmt.Sprintf("127.0.0.1:%d", s.port), b.path("other"), "--localio=off")
			status := r.status()
			lostSource(t, status, r.out.String(), r.err.String())
			if verb == "verify" {
				return
			}
			if !strings.Contains(r.err.String(), "to go on from here: ") {
				t.Errorf("it does not say how to go on\n%s", r.err)
			}
			other.kill()
			b.serveWith(s.state, fmt.Sprintf("127.0.0.1:%d", s.port), b.path("srv"), "--localio=off")
			if again := b.must(0, args...); again.count(b, "skipped") == 0 {
				t.Errorf("the job began anew: %s", again.stdout)
			}
			b.same(b.path("srv"), b.path("copy"))
		})
	}
}

// TestSourceRemoved: a directory of this host is moved away and removed while it is copied.
func TestSourceRemoved(t *testing.T) {
	b := newBox(t)
	for i := range 300 {
		b.write(b.path("src", fmt.Sprint(i)), string(pattern(40_000, byte(i))))
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := b.proxy(b.serve(b.path("srv")), func(p *proxy) {
		p.towards = b.whenPassed(4_000_000, func() {
			if err := os.Rename(b.path("src"), b.path("away")); err != nil {
				t.Error(err)
			}
			if err := os.RemoveAll(b.path("away")); err != nil {
				t.Error(err)
			}
		})
	})
	r := b.run("cp", "-r", "--json", b.path("src"), p.url()+"copy")
	if r.status != 4 || !strings.Contains(r.stderr, "the source is gone") {
		t.Errorf("exit status %d\n%.3000s", r.status, r.stdout+r.stderr)
	}
}

// TestSourceReplaced: another directory gets the name of the source while it is copied. What
// was read is the first one, to the end, and the name does not say so any more.
func TestSourceReplaced(t *testing.T) {
	for _, from := range []string{"local", "nfs"} {
		t.Run(from, func(t *testing.T) {
			b := newBox(t)
			for i := range 100 {
				b.write(b.path("srv", "src", fmt.Sprint(i)), string(pattern(40_000, byte(i))))
				b.write(b.path("srv", "other", fmt.Sprint(i)), string(pattern(40_000, byte(i+1))))
			}
			replace := b.whenPassed(1_000_000, func() {
				for _, names := range [][2]string{{"src", "away"}, {"other", "src"}} {
					if err := os.Rename(b.path("srv", names[0]), b.path("srv", names[1])); err != nil {
						t.Error(err)
					}
				}
			})
			p := b.proxy(b.serve(b.path("srv")), func(p *proxy) { p.towards, p.back = replace, replace })
			source, dest := p.url()+"src", b.path("copy")
			if from == "local" {
				source, dest = b.path("srv", "src"), p.url()+"copy"
			}
			r := b.run("cp", "-r", "--json", source, dest)
			if r.status != 4 || strings.Count(r.stderr, "the source is gone") != 1 {
				t.Errorf("exit status %d\n%.3000s", r.status, r.stdout+r.stderr)
			}
		})
	}
}

// TestSourceAway: a server is killed, begun again with another directory, and then again with
// the one that is being copied. What was not there meanwhile has not vanished.
func TestSourceAway(t *testing.T) {
	b := newBox(t)
	const files = 40
	for i := range files {
		b.write(b.path("srv", "src", fmt.Sprint(i%4), fmt.Sprint(i)), string(pattern(400_000, byte(i))))
		b.write(b.path("other", "src", fmt.Sprint(i%4), fmt.Sprint(i)), "another file")
	}
	again := func(s *server, dir string) *server {
		return b.serveWith(s.state, fmt.Sprintf("127.0.0.1:%d", s.port), b.path(dir), "--localio=off")
	}
	s := b.serveAt(b.port(), b.path("srv"))
	lost, back := make(chan struct{}), make(chan struct{})
	var other atomic.Pointer[server]
	p := b.proxy(s, func(p *proxy) {
		lose := b.whenPassed(4_000_000, func() { s.kill(); close(lost) })
		bring := b.whenPassed(3_000, func() { other.Load().kill(); close(back) })
		p.back = func() change {
			first, second := lose(), bring()
			return func(data []byte) []byte {
				if other.Load() != nil {
					return second(data)
				}
				return first(data)
			}
		}
	})
	r, ended := b.begin("cp", "-r", "--json", p.url()+"src", b.path("copy")), make(chan int, 1)
	<-lost
	other.Store(again(s, "other"))
	go func() { ended <- r.status() }()
	status := -1
	select {
	case status = <-ended: // it has seen that the source is gone
	case <-back:
		again(s, "srv")
		status = <-ended
	}
	copied, err := filepath.Glob(b.path("copy", "*", "*"))
	if text := r.out.String(); err != nil || status == 0 && len(copied) < files || strings.Contains(text, `"kind":"vanished"`) {
		t.Errorf("exit status %d, %d of %d files, %v\n%.3000s", status, len(copied), files, err, text+r.err.String())
	}
}
