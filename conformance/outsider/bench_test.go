//go:build linux

package outsider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// freeze stops the server, and returns when nothing of it runs any more.
func (s *server) freeze() {
	s.b.Helper()
	s.signal(syscall.SIGSTOP)
	s.b.until("the server is stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
		s.b.no(err)
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if _, state, _ := strings.Cut(string(text), ") "); err == nil && !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return true
	})
}

// TestInterruptedBench: a measurement is interrupted while its server does not answer.
// It names all that it has not removed.
func TestInterruptedBench(t *testing.T) {
	heeds(t, os.Interrupt)
	for name, args := range map[string][]string{
		"read":          {"read", "--file-size=1M"},
		"write":         {"write", "-c", "4", "--file-size=1M"},
		"write through": {"write", "--through", "--file-size=1M"},
		"upload":        {"upload", "-c", "4", "--size=1000", "--files=1000"},
		"upload begins": {"upload", "-c", "4", "--size=1000", "--files=1000"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			b.no(os.Mkdir(b.path("srv"), 0o755))
			s := b.serve(b.path("srv"))
			r := b.begin(append(append([]string{"bench"}, args...), "--duration=1h", "--warmup=1h", "--no-progress", s.url)...)
			want := map[string]int{"write": 4, "upload": 100}[name]
			b.until("it has made its files", func() bool { return len(b.names(b.path("srv"))) >= max(want, 1) })
			s.freeze()
			b.no(r.Process.Signal(os.Interrupt))
			status := r.status()
			left, err := os.ReadDir(b.path("srv"))
			b.no(err)
			text := r.err.String()
			if status == 0 || !strings.Contains(text, "interrupted") {
				t.Errorf("exit status %d:\n%s", status, text)
			}
			for _, entry := range left { // of upload the dataset's directory
				file := entry.Name()
				if !strings.Contains(text, file+" is left behind") && !strings.Contains(text, file+" may be left behind") {
					t.Errorf("exit status %d, and it does not say that %s is left behind:\n%s", status, file, text)
				}
			}
		})
	}
}
