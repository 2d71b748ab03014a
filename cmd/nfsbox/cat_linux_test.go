package main

import (
	"os"
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
