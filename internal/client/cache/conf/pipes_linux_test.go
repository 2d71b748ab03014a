package conf

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadPipe: a pipe is not waited for.
func TestReadPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(name); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}
