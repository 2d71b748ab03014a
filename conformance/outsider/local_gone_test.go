//go:build linux

package outsider

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveLocal serves dir with LOCALIO. The URL has the directory of its socket.
func (b *box) serveLocal(dir string) (s *server, url string) {
	b.Helper()
	sockets := b.path("sockets")
	b.no(os.MkdirAll(sockets, 0o755))
	s = b.serveWith(b.path(".local"), "127.0.0.1:0", dir, "--localio-dir", sockets)
	return s, s.url + "%s?localio-dir=" + strings.ReplaceAll(sockets, "/", "%%2F")
}

// TestLocalServerKilled: client and server are on one host, and the server is killed during a
// copy. The user learns within seconds who does not answer, and until when the copy waits: as
// long as its calls do, and not as long as the question for a new LOCALIO session.
func TestLocalServerKilled(t *testing.T) {
	b := newBox(t)
	for i := range 1000 {
		b.write(b.path("src", fmt.Sprint(i)), "small")
	}
	b.no(os.Mkdir(b.path("srv"), 0o755))
	s, url := b.serveLocal(b.path("srv"))
	cp := b.begin("cp", "-r", "--json", b.path("src"), fmt.Sprintf(url, "copy"))
	b.until("the copy has begun", func() bool {
		names, _ := os.ReadDir(b.path("srv", "copy")) // it may not be there yet
		return len(names) > 20
	})
	s.kill()
	type silent struct {
		Type, Server string
		Since, Until time.Time
	}
	var told silent
	b.until("the copy tells of the server", func() bool {
		for line := range strings.Lines(cp.out.String()) {
			var e silent
			if json.Unmarshal([]byte(line), &e) == nil && e.Type == "silent" { // the last line may not be whole yet
				told = e
				return true
			}
		}
		return cp.ProcessState != nil
	})
	if want := fmt.Sprint("127.0.0.1:", s.port); told.Server != want || told.Until.Sub(told.Since) < 2*time.Minute {
		t.Errorf("told %+v of %s", told, want)
	}
	b.no(cp.Process.Signal(syscall.SIGINT))
	if status := cp.status(); status != 130 {
		t.Errorf("exit status %d of the interrupted copy", status)
	}
}
