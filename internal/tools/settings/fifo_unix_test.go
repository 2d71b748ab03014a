//go:build unix

package settings

import (
	"os"
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
	if _, err := Read(fifo, true, nil); err == nil {
		t.Error("a pipe was read")
	}
}

// TestClosedHome: a directory that is closed to this user sets nothing, and a file that is closed
// is an error.
func TestClosedHome(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("NOT TESTED by root, to whom nothing is closed")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "nfsbox.toml")
	if err := os.WriteFile(file, []byte("wrong"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file, false, os.Getenv); err == nil {
		t.Error("a file that cannot be read sets nothing, in silence")
	}
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // for the removal
	if _, err := Read(file, false, os.Getenv); err != nil {
		t.Error(err)
	}
}
