package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/tools/bench"
)

// TestByteSize takes numbers with binary units, and nothing else.
func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"1": 1, "4096": 4096, "64K": 64 << 10, "64kib": 64 << 10, "1m": 1 << 20, "2GiB": 2 << 30, "1T": 1 << 40, "7B": 7,
	} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "0K", "-1", "+1", "K", "1X", "1 K", "1KK", "1.5M", "9223372036854775808", "8388608T", "1e3"} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// TestBenchLine rewrites one line on a terminal, and takes it away in the end.
func TestBenchLine(t *testing.T) {
	var out, stderr bytes.Buffer
	e := &env{stdout: &out, stderr: &stderr, tty: true, errSize: func() (int, int) { return 60, 24 }}
	s := new(benchFlags).shower(e, "read")
	s.each(bench.Sample{Seconds: 1, Ops: 1234, OpsPerSecond: 1234, Bytes: 1, BytesPerSecond: 3 << 20, Latency: bench.Latency{P99: 1500}})
	s.each(bench.Sample{Seconds: 2, Ops: 2345, OpsPerSecond: 1111, Entries: 1, EntriesPerSecond: 5000, Errors: 2})
	if err := s.result(&bench.Result{Verb: "read"}); err != nil || s.err != nil {
		t.Fatal(err, s.err)
	}
	want := "\r\x1b[Kread: 1,234/s, 3.0 MiB/s, p99 1.50 ms, 1 s, 1,234 operation" +
		"\r\x1b[Kread: 1,111/s, 2 errors, 5,000 entries/s, p99 0.0 µs, 2 s, " + "\r\x1b[K" // which fits
	if got := stderr.String(); got != want {
		t.Errorf("%q", got)
	}
	if !strings.HasPrefix(out.String(), "bench       read, 0 at once") {
		t.Errorf("%q", out.String())
	}
}

// TestHostileStep shows what a server says so that it cannot steer the terminal.
func TestHostileStep(t *testing.T) {
	text := stepText(&doctorEvent{Step: "mount", Result: "failed", Detail: "a\x1b[2Jb\nc", Error: &fault.JSON{Message: "d\re"}, Advice: "f\ng"}, 0)
	if strings.ContainsAny(text, "\x1b\r") || strings.Count(text, "\n") != 5 || !strings.Contains(text, "-> g\n") {
		t.Errorf("%q", text)
	}
	table := statsText("nfs://\x1b", &nfsbox.Stats{})
	if strings.Contains(table, "\x1b") {
		t.Errorf("%q", table)
	}
}

// TestWritePage harms nothing that was there when a page cannot be drawn, or not
// written: neither a page of before, nor a device.
func TestWritePage(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.html")
	write := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, written := io.WriteString(w, text)
			return errors.Join(err, written)
		}
	}
	if err := writePage(name, write("old", nil)); err != nil {
		t.Fatal(err)
	}
	if err := writePage(name, write("new", errors.New("cannot be drawn"))); err == nil || !strings.Contains(err.Error(), "--html: cannot be drawn") {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "old" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("NOT TESTED: no full device")
	}
	full := filepath.Join(t.TempDir(), "full.html")
	if err := os.Symlink("/dev/full", full); err != nil {
		t.Fatal(err)
	}
	if err := writePage(full, write("new", nil)); err == nil {
		t.Error("written to a full device")
	}
	if _, err := os.Lstat(full); err != nil {
		t.Errorf("what stood there is gone: %v", err)
	}
}

// TestSecretsBounded reads no file of flags to an end that may never come.
func TestSecretsBounded(t *testing.T) {
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small"), filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(small, []byte("x"), 0o600), os.WriteFile(large, nil, 0o600), os.Truncate(large, maxSecret+1)); err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]*apiFlags{
		"--ca: ":             {CA: large},
		"--cert: ":           {Cert: large, Key: small},
		"--key: ":            {Cert: small, Key: large},
		"--cert and --key: ": {Cert: small, Key: small},
		"--token-file: ":     {TokenFile: large},
	} {
		_, err := f.tls()
		if f.TokenFile != "" {
			_, err = f.token()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "more than 1048576 bytes") != (want != "--cert and --key: ") {
			t.Errorf("%s%v", want, err)
		}
	}
}
