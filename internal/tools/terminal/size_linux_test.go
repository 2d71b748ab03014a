package terminal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/pty"
)

// TestSize measures terminals, and what is none.
func TestSize(t *testing.T) {
	t.Setenv("TERM", "xterm")
	_, tty := pty.Open(t, 132, 43)
	for _, want := range [][2]uint16{{132, 43}, {40, 10}, {0, 0}} {
		pty.Resize(t, tty, want[0], want[1])
		if want[0] == 0 {
			want = [2]uint16{UsualWidth, UsualHeight}
		}
		if width, height := Size(tty)(); width != int(want[0]) || height != int(want[1]) {
			t.Errorf("%d by %d, want %v", width, height, want)
		}
	}
	t.Setenv("TERM", "dumb")
	if Size(tty) != nil {
		t.Error("a dumb terminal is drawn on")
	}
	t.Setenv("TERM", "xterm")
	for _, name := range []string{os.DevNull, filepath.Join(t.TempDir(), "file")} {
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if Size(f) != nil {
			t.Errorf("%s is a terminal", name)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
