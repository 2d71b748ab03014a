package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// capability is CAP_NET_RAW, permitted and effective, as security.capability has it (version 2).
var capability = []byte("\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")

// TestRestoreRights: no file gets another owner, set-id bits or capabilities because it has the size and the time of one that has them, and
// none by a name outside of PLACE that the snapshot does not know.
func TestRestoreRights(t *testing.T) {
	need.Root(t, "owners, set-id bits, capabilities")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	tree, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	names := []string{"tool", "owned", "able"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(tree, name), []byte("good"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Chmod(filepath.Join(tree, "tool"), 0o4755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(filepath.Join(tree, "able"), "security.capability", capability, 0); err != nil {
		t.Logf("NOT TESTED: capabilities: %v", err)
		names = names[:2]
	}
	ask(t, 0, "backup", "-q", tree, store, "--name", "home")
	for _, bytes := range []string{"evil", "good"} {
		for _, how := range [][]string{{}, {"-n"}} {
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			ask(t, 0, "restore", "-q", store+"::home", out)
			for _, name := range names {
				seize(t, filepath.Join(out, name), filepath.Join(dir, name), bytes)
			}
			said, _ := ask(t, 0, append([]string{"restore", "--json", store + "::home", out}, how...)...)
			if want := map[int]string{2: `"files":2,`, 3: `"files":3,`}[len(names)]; !strings.Contains(said, want) {
				t.Errorf("%s, %q: %s", bytes, how, said)
			}
			for _, name := range names {
				checkSeized(t, filepath.Join(out, name), filepath.Join(dir, name), bytes, slices.Contains(how, "-n"))
			}
		}
	}
}

// seize puts a file of another user in the place of one, with its size and time, and gives it a name elsewhere.
func seize(t *testing.T, path, elsewhere, bytes string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte(bytes), 0o755), os.Chtimes(path, time.Time{}, info.ModTime()),
		os.Lchown(path, 1000, 1000), os.Link(path, elsewhere)); err != nil {
		t.Fatal(err)
	}
}

// checkSeized fails the test unless the file of the other user is as it was, and path is what the snapshot has; dry: that file.
func checkSeized(t *testing.T, path, elsewhere, bytes string, dry bool) {
	t.Helper()
	state := func(path string) (string, unix.Stat_t) {
		t.Helper()
		var st unix.Stat_t
		b, err := os.ReadFile(path)
		if err = errors.Join(err, unix.Stat(path, &st)); err != nil {
			t.Fatal(err)
		}
		return string(b), st
	}
	got, st := state(elsewhere)
	if got != bytes || st.Uid != 1000 || st.Mode&0o7777 != 0o755 || attrOf(t, elsewhere, "security.capability") != "none" {
		t.Errorf("%s, of another user, has become %q, %o of %d", elsewhere, got, st.Mode, st.Uid)
	}
	if dry {
		return
	}
	got, st = state(path)
	want := uint32(0o755)
	if filepath.Base(path) == "tool" {
		want = 0o4755
	}
	able := attrOf(t, path, "security.capability") != "none"
	if got != "good" || st.Uid != 0 || st.Mode&0o7777 != want || able != (filepath.Base(path) == "able") {
		t.Errorf("%s is %q, %o of %d, with capabilities: %v", path, got, st.Mode, st.Uid, able)
	}
}
