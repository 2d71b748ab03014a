package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

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
		return errors.Join(out.event(errorEvent{Type: "first"}), ctx.Err())
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
