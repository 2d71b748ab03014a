//go:build unix

package settings

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipe: a pipe is not waited for.
func TestPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(fifo, nil); err == nil {
		t.Error("a pipe was read")
	}
}
