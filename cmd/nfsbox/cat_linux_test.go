package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCatKernelFiles: the end of a file whose st_size does not say where it ends, as in /proc (0) and /sys (a
// page), is its end.
func TestCatKernelFiles(t *testing.T) {
	for _, file := range []string{"/proc/version", "/proc/filesystems", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Log(err)
			continue
		}
		lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
		last := lines[len(lines)-1] + "\n"
		for _, c := range []struct{ args, want string }{
			{"--tail=1", last}, {"--tail=0", ""}, {"--tail=9999", string(text)},
			{"--offset=-3", string(text[len(text)-3:])}, {"--offset=-99999999", string(text)},
		} {
			if status, got, stderr := command(t, "cat", c.args, file); status != exitOK || got != c.want {
				t.Errorf("%s of %s: %q, want %q; status %d: %s", c.args, file, got, c.want, status, stderr)
			}
		}
	}
}

// TestCopyKernelFiles: such files are copied to their ends, verified, and the same when they are compared.
func TestCopyKernelFiles(t *testing.T) {
	for _, file := range []string{"/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Log(err)
			continue
		}
		to := filepath.Join(t.TempDir(), "copy")
		if status, _, stderr := command(t, "cp", "--verify", file, to); status != exitOK {
			t.Errorf("%s: status %d: %s", file, status, stderr)
		}
		if got, err := os.ReadFile(to); err != nil || string(got) != string(text) {
			t.Errorf("%s is copied as %q; %v", file, got, err)
		}
		if status, _, stderr := command(t, "verify", file, to); status == exitIncomplete || strings.Contains(stderr, "difference: content") || strings.Contains(stderr, "difference: size") {
			t.Errorf("%s: status %d: %s", file, status, stderr)
		}
	}
}
