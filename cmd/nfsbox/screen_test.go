package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// TestFolding breaks messages, and neither lines of progress nor commands to be typed.
func TestFolding(t *testing.T) {
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
		e := &env{stderr: &b, errSize: func() (int, int) { return 25, 10 }, name: "./nfsbox"}
		if n, err := e.messages().Write([]byte(c.in)); n != len(c.in) || err != nil {
			t.Errorf("%q: %d, %v", c.in, n, err)
		}
		if b.String() != c.want {
			t.Errorf("%q is shown as\n%q, want\n%q", c.in, b.String(), c.want)
		}
	}
	e := &env{stderr: new(bytes.Buffer)}
	if e.messages() != e.stderr {
		t.Error("what is no terminal is folded")
	}
}

// TestDoctorFits: a step fits terminals of any width; what there is to say stands beside it, or below.
func TestDoctorFits(t *testing.T) {
	x := &doctorEvent{Step: "local I/O", Result: "failed", Seconds: 0.012, Detail: "found this and that", Error: &fault.JSON{Message: "no answer in time"}, Advice: strings.Repeat("words ", 20)}
	for width := 18; width < 160; width++ {
		for _, line := range strings.Split(stepText(x, width), "\n") {
			if n := progress.Columns(line); n > width {
				t.Fatalf("%d columns: %q has %d", width, line, n)
			}
		}
	}
	want := "local I/O FAILED\n  12.00 ms\n  found this and that\n  no answer in time\n  -> words words"
	if got := stepText(x, 21); !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
}

// TestFoldHelp: where it is narrow, what a flag does stands below it. Examples stay.
func TestFoldHelp(t *testing.T) {
	const text = `Usage: nfsbox do <PLACE> [flags]

Does it:

    nfsbox do this and that and more of it

Arguments:
  <PLACE>    What to do,
             or not.

Flags:
      --progress=auto|bar|lines|none
                  Show it.
  -l, --long      Long lines of
                  text are broken.
`
	const want = `Usage: nfsbox do <PLACE>
  [flags]

Does it:

    nfsbox do this and that and more of it

Arguments:
  <PLACE>
    What to do, or not.

Flags:
  --progress=auto|bar|lines|none
    Show it.
  -l, --long
    Long lines of text
    are broken.
`
	if got := foldHelp(text, 24); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := foldHelp(text, 80); got != text {
		t.Errorf("%s\nwant\n%s", got, text)
	}
}
