//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sockets lists the server's sockets of this kind, as /proc/net has them.
func (s *server) sockets(kind string) (lines []string) {
	s.b.Helper()
	list, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.cmd.Process.Pid))
	s.b.no(err)
	own := make(map[string]bool)
	for _, fd := range list {
		if to, err := os.Readlink(fd); err == nil {
			own[to] = true
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", s.cmd.Process.Pid, kind))
	if os.IsNotExist(err) {
		return nil
	}
	s.b.no(err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 9 && own["socket:["+f[9]+"]"] {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestFourIsFour: a server that is told to listen at an address of IPv4 alone, be it any,
// opens nothing over IPv6.
func TestFourIsFour(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "f"), "text")
	state, err := os.MkdirTemp(b.dir, ".served-")
	b.no(err)
	s := b.serveWith(state, "0.0.0.0:0", b.path("srv"), "--localio=off", "--udp", "--allow=127.0.0.1",
		"--portmap-listen=0.0.0.0:0", "--metrics=0.0.0.0:0", "--http=0.0.0.0:0")
	for kind, want := range map[string]int{"tcp": 4, "udp": 2} {
		if got := s.sockets(kind); len(got) < want {
			t.Errorf("the server has %d sockets of %s, want %d", len(got), kind, want)
		}
		if got := s.sockets(kind + "6"); len(got) > 0 {
			t.Errorf("the server has sockets of %s6:\n%s", kind, strings.Join(got, "\n"))
		}
	}
}
