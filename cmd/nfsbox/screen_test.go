package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// TestMessages: messages to a terminal are folded, and others are not.
func TestMessages(t *testing.T) {
	var b bytes.Buffer
	e := &env{stderr: &b, errSize: func() (int, int) { return 25, 10 }, name: "./nfsbox"}
	if _, err := e.messages().Write([]byte("nfsbox: to go on: ./nfsbox cp --job a b c d e\n")); err != nil {
		t.Fatal(err)
	}
	if want := "nfsbox: to go on:\n  ./nfsbox cp --job a b c d e\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	e = &env{stderr: new(bytes.Buffer)}
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
