//go:build linux

package outsider

import (
	"fmt"
	"os"
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

// lostSource checks how a job ends whose source is lost as a whole.
func lostSource(t *testing.T, status int, text string) {
	t.Helper()
	if status != 4 || strings.Count(text, "the source is gone") != 1 {
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
			s := b.serve(b.path("srv"))
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
			lostSource(t, status, r.out.String()+r.err.String())
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
