package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/nfsbox/nfsbox/internal/tools/place"
)

// TestInterrupted prints what there was until an interruption, and a summary.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stdout, stderr := new(bytes.Buffer), new(bytes.Buffer)
	e := &env{ctx: ctx, stdout: stdout, stderr: stderr, rand: func(p []byte) { _, _ = rand.Read(p) }} // never fails
	err := eachPlace(e, []string{t.TempDir(), t.TempDir()}, true, place.Options{}, func(out *output, _ *place.Place) error {
		stop()
		return errors.Join(out.event("first", errorEvent{Path: "p"}), ctx.Err())
	})
	if status := report(e, err); status != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("status %d: %s", status, stderr)
	}
	lines := strings.Split(stdout.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], `{"time":"2`) || !strings.Contains(lines[0], `"type":"first"`) ||
		!strings.HasSuffix(lines[1], `"type":"summary","entries":1,"errors":1}`) || lines[2] != "" {
		t.Errorf("%s", stdout)
	}
}

// fullOutput is an output that has room for n bytes.
type fullOutput struct{ n int }

func (w *fullOutput) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestFullOutput: an output that cannot be written is one error, which blames no argument, and its status is that
// of a command whose output cannot be written, also for help.
func TestFullOutput(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(dir, strings.Repeat("n", 100)+strconv.Itoa(i)), make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "large")
	if err := os.WriteFile(file, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"--help", "ls --help", "version", "urls", "completion bash", "ls D", "ls -R D", "ls --json D D", "find D", "find --json D", "du -a D", "scan D", "cat F F", "stat D D"} {
		args := strings.Fields(strings.NewReplacer("D", dir, "F", file).Replace(line))
		for _, room := range []int{0, 5000} {
			stderr := new(bytes.Buffer)
			status := run(&env{ctx: t.Context(), stdout: &fullOutput{room}, stderr: stderr, rand: func([]byte) {}}, args)
			if room > 0 && status == exitOK {
				continue // it had room
			}
			if status != exitIncomplete || strings.Count(stderr.String(), "nfsbox: standard output: ") != 1 || strings.Count(stderr.String(), "no space") != 1 {
				t.Errorf("%s, room for %d: status %d\n%s", line, room, status, stderr)
			}
		}
	}
}

// TestJSONIsPrintable: no name steers the terminal that shows JSON.
func TestJSONIsPrintable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such names here")
	}
	dir := t.TempDir()
	const name = "a\u009b2J\u202e\x7f\x1b"
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ls", "--json", dir}, {"stat", "--json", filepath.Join(dir, name), filepath.Join(dir, name+"none")}} {
		_, out, _ := command(t, args...)
		if !strings.Contains(out, `a\u009b2J\u202e\u007f\u001b`) || strings.ContainsFunc(strings.ReplaceAll(out, "\n", ""), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: %q", args[0], out)
		}
	}
}
