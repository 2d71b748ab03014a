// Package need skips tests that need what a machine does not have: a peer, a tool, to be
// root, or time. The skip says what is not tested. If NFSBOX_REQUIRE, a list divided by
// commas, names what is missing, the test fails instead: so a run that is to have
// everything cannot pass without it.
package need

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Demanded reports whether NFSBOX_REQUIRE names what.
func Demanded(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("NFSBOX_REQUIRE"), ","), what)
}

// Missing ends a test for want of what: it is skipped, or has failed if that is
// demanded.
func Missing(t testing.TB, what, why string) {
	t.Helper()
	if Demanded(what) {
		t.Fatalf("NFSBOX_REQUIRE names %s: %s", what, why)
	}
	t.Skipf("NOT TESTED with %s: %s", what, why)
}

// Root ends a test as Missing does, if it is not run by root.
func Root(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "root", why)
	}
}

// Time ends a test that takes long under go test -short: it is skipped, and says what is
// left out. Without -short it does nothing.
func Time(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("NOT TESTED, -short leaves it out: %s", what)
	}
}

// Speed ends a test under the race detector, which takes up to ten times as long: it is skipped, and says why the detector
// would find nothing in it that it does not find elsewhere. Otherwise it does nothing.
func Speed(t testing.TB, why string) {
	t.Helper()
	if Race {
		t.Skipf("NOT TESTED with the race detector: %s", why)
	}
}

// Tool finds a program. Without it, what is missing.
func Tool(t testing.TB, what, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Missing(t, what, err.Error())
	}
	return path
}

// Fuse ends a test as Missing does, if this process cannot mount a file system of its own (FUSE).
func Fuse(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		Missing(t, "fuse", err.Error())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		Tool(t, "fuse", "fusermount3")
	}
}
