package built_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/built"
)

// TestGiven: what the variable names is taken as it is, by a path that holds in every directory.
func TestGiven(t *testing.T) {
	t.Setenv("NFSBOX_BINARY", "some/nfsbox")
	path, err := built.Into("/nonexistent")
	if err != nil || !filepath.IsAbs(path) || filepath.Base(path) != "nfsbox" || !built.Given() {
		t.Errorf("%q, %v", path, err)
	}
}

// TestBuilt: otherwise it is built, and runs.
func TestBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED, -short leaves it out: the command is built")
	}
	t.Setenv("NFSBOX_BINARY", "")
	dir := t.TempDir()
	path, err := built.Into(dir)
	if err != nil || path != filepath.Join(dir, "nfsbox") || built.Given() {
		t.Fatalf("%q, %v", path, err)
	}
	if out, err := exec.Command(path, "--version").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
