package terminal

import (
	"bytes"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// TestMessages: messages are broken at the width of a terminal, and neither lines of progress nor commands to be typed.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"nfsbox: short\n", "nfsbox: short\n"},
		{"nfsbox: a message that is too long for it\n", "nfsbox: a message that is\n      too long for it\n"},
		{"        -> advice of some length here\n", "        -> advice of some\n      length here\n"},
		{"copied: 12 files, 3 directories\nfailed: 1 item\n", "copied: 12 files, 3\n  directories\nfailed: 1 item\n"},
		{progress.Erase + "50%, 12 of 24 items, 1.0 MiB/s", progress.Erase + "50%, 12 of 24 items, 1.0 MiB/s"},
		{progress.Erase + "error: some/path: no such file\n", progress.Erase + "error: some/path: no such\n  file\n"},
		{"\x1b[1mbold, and wider than it may be\x1b[0m\n", "\x1b[1mbold, and wider than it may be\x1b[0m\n"},
		{"nfsbox: to go on: ./nfsbox cp --job a b c d e\n", "nfsbox: to go on:\n  ./nfsbox cp --job a b c d e\n"},
		{"error: 漢字漢字漢字 漢字漢字漢字\n", "error: 漢字漢字漢字\n  漢字漢字漢字\n"},
	} {
		var b bytes.Buffer
		m := Messages{To: &b, Width: func() int { return 25 }, Command: ": ./nfsbox "}
		if n, err := m.Write([]byte(c.in)); n != len(c.in) || err != nil {
			t.Errorf("%q: %d, %v", c.in, n, err)
		}
		if b.String() != c.want {
			t.Errorf("%q is shown as\n%q, want\n%q", c.in, b.String(), c.want)
		}
	}
}
