// Package built has the command nfsbox for tests that run it, as it is shipped: without cgo.
//
// Linking it takes seconds, and several packages run it. NFSBOX_BINARY names one that is built already: a run of all
// tests builds it once, and an older one can be tried. Where the variable is not set, nothing old is ever taken.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const variable = "NFSBOX_BINARY"

// Given reports whether NFSBOX_BINARY names the command, which nobody here has made or may remove.
func Given() bool { return os.Getenv(variable) != "" }

// Into is the path of the command: the one that NFSBOX_BINARY names, or dir/nfsbox, which it builds.
func Into(dir string) (path string, err error) {
	if Given() {
		return filepath.Abs(os.Getenv(variable))
	}
	path = filepath.Join(dir, "nfsbox")
	build := exec.Command("go", "build", "-o", path, "github.com/nfsbox/nfsbox/cmd/nfsbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}
