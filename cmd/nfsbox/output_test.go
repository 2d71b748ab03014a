package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
