package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// attrBed is a tree whose objects have extended attributes, a link and a pipe among them, and a store with a snapshot of it.
func attrBed(t *testing.T) (tree, store string) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	tree, store = t.TempDir(), filepath.Join(t.TempDir(), "store")
	at := func(name string) string { return filepath.Join(tree, name) }
	if err := errors.Join(os.WriteFile(at("file"), []byte("content"), 0o640), os.Mkdir(at("dir"), 0o755), os.Symlink("file", at("link")), unix.Mkfifo(at("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "pipe", "file", "dir"} {
		if err := unix.Lsetxattr(at(name), "trusted.nfsbox", []byte(name), 0); err != nil {
			t.Skipf("NOT TESTED: no trusted extended attributes: %v", err)
		}
	}
	if err := unix.Setxattr(at("file"), "user.kept", []byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	ask(t, 0, "backup", "-q", tree, store, "--name", "home")
	return tree, store
}

func attrOf(t *testing.T, path, name string) string {
	t.Helper()
	b := make([]byte, 100)
	n, err := unix.Lgetxattr(path, name, b)
	if errors.Is(err, unix.ENODATA) {
		return "none"
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(b[:n])
}

// TestRestoreXattrs: what symbolic links and pipes have of extended attributes comes back as that of files does; where it cannot, it is
// counted. verify --acls compares it.
func TestRestoreXattrs(t *testing.T) {
	tree, store := attrBed(t)
	out := filepath.Join(t.TempDir(), "out")
	ask(t, 0, "restore", "-q", store+"::home", out)
	for _, name := range []string{"link", "pipe", "file", "dir"} {
		if got := attrOf(t, filepath.Join(out, name), "trusted.nfsbox"); got != name {
			t.Errorf("%s has %q", name, got)
		}
	}
	ask(t, 0, "verify", "-q", "--acls", tree, out)
	if err := unix.Lremovexattr(filepath.Join(out, "link"), "trusted.nfsbox"); err != nil {
		t.Fatal(err)
	}
	if _, said := ask(t, 3, "verify", "--acls", tree, out); !strings.Contains(said, "link: 1 extended attribute") {
		t.Error(said)
	}
	if err := os.Mkdir(filepath.Join(out, "served"), 0o755); err != nil {
		t.Fatal(err)
	}
	url, _ := exitServer(t, filepath.Join(out, "served"), t.TempDir())
	if said, _ := ask(t, 0, "restore", "--json", store+"::home", url+"there"); !strings.Contains(said, `"xattrs_lost":4`) {
		t.Error(said)
	}
}

// TestRestoreAttrsAgain: what stays, as it has the size and the time, gets lists and extended attributes again, and loses those that the
// snapshot does not have, if the backup has looked for such. A dry run says so before.
func TestRestoreAttrsAgain(t *testing.T) {
	_, store := attrBed(t)
	out := filepath.Join(t.TempDir(), "out")
	ask(t, 0, "restore", "-q", store+"::home", out)
	at := func(name string) string { return filepath.Join(out, name) }
	list := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x07\x00\xe7\x03\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
	spoil := func() {
		t.Helper()
		if err := errors.Join(
			unix.Setxattr(at("file"), "system.posix_acl_access", list, 0), unix.Setxattr(at("file"), "user.kept", []byte("other"), 0), unix.Setxattr(at("file"), "user.more", []byte("more"), 0),
			unix.Lsetxattr(at("link"), "trusted.nfsbox", []byte("other"), 0), unix.Lsetxattr(at("link"), "trusted.more", []byte("more"), 0),
			unix.Setxattr(at("dir"), "trusted.nfsbox", []byte("other"), 0),
		); err != nil {
			t.Fatal(err)
		}
	}
	now := func() string {
		return strings.Join([]string{
			attrOf(t, at("file"), "system.posix_acl_access"), attrOf(t, at("file"), "user.kept"), attrOf(t, at("file"), "user.more"),
			attrOf(t, at("link"), "trusted.nfsbox"), attrOf(t, at("link"), "trusted.more"), attrOf(t, at("dir"), "trusted.nfsbox"),
		}, " ")
	}
	spoil()
	for _, args := range [][]string{{"-n"}, {}} {
		said, _ := ask(t, 0, append([]string{"restore", "--json", store + "::home", out}, args...)...)
		if !strings.Contains(said, `"attrs_set":3`) || !strings.Contains(said, `"summary","files":0,`) {
			t.Errorf("%q: %s", args, said)
		}
	}
	if got := now(); got != "none kept none link none dir" {
		t.Error(got)
	}
	// A snapshot of a backup that could not look for attributes takes none away. A server shows lists.
	blind := filepath.Join(t.TempDir(), "store")
	keepBlind(t, blind, out)
	spoil()
	ask(t, 0, "restore", "-q", blind+"::home", out)
	if got := now(); got != "none other more other more other" {
		t.Error(got)
	}
	ask(t, 0, "restore", "-q", "--overwrite=never", store+"::home", out)
	if got := now(); got != "none other more other more other" {
		t.Error(got)
	}
}

// keepBlind keeps a snapshot of a tree as a server shows it: without extended attributes.
func keepBlind(t *testing.T, store, tree string) {
	t.Helper()
	url, _ := exitServer(t, tree, t.TempDir())
	ask(t, 0, "backup", "-q", url, store, "--name", "home")
}

// TestRestoreVerify: with --verify files that have the size and the time are compared as well. One that differs is replaced.
func TestRestoreVerify(t *testing.T) {
	b := newRestoreBed(t)
	out := filepath.Join(t.TempDir(), "out")
	ask(t, 0, "restore", "-q", b.store+"::home", out)
	spoil := func() {
		t.Helper()
		at := filepath.Join(out, "d/small")
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(at, []byte("SMALL"), 0o604), os.Chtimes(at, time.Time{}, info.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	ask(t, 0, "restore", "-q", b.store+"::home", out)
	if got := b.read(filepath.Join(out, "d/small")); got != "SMALL" {
		t.Errorf("without --verify it becomes %q", got)
	}
	said, _ := ask(t, 0, "restore", "--json", "--verify", b.store+"::home", out)
	if !strings.Contains(said, `"path":"d/small","message":"it has the size and the time, but not the bytes`) || !strings.Contains(said, `"summary","files":1,`) || !strings.Contains(said, `"verified":4`) {
		t.Error(said)
	}
	ask(t, 0, "verify", "-q", b.tree, out)
	spoil()
	if said, _ := ask(t, 0, "restore", "--json", "--verify", "--overwrite=never", b.store+"::home", out); !strings.Contains(said, `"verified":0`) {
		t.Error(said)
	}
	ask(t, 0, "restore", "-q", "--verify", b.store+"::home/d/small", filepath.Join(out, "d/small")) // alone, too
	if got := b.read(filepath.Join(out, "d/small")); got != "small" {
		t.Errorf("it becomes %q", got)
	}
}

// TestRestoreLeavesLocked: a directory that nobody may enter, and is as it should be, is left alone.
func TestRestoreLeavesLocked(t *testing.T) {
	need.Root(t, "a directory that nobody may enter")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	tree, store, out := t.TempDir(), filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(filepath.Join(tree, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	ask(t, 0, "backup", "-q", tree, store, "--name", "home")
	ask(t, 0, "restore", "-q", store+"::home", out)
	var before, after unix.Stat_t
	if err := unix.Stat(filepath.Join(out, "locked"), &before); err != nil {
		t.Fatal(err)
	}
	said, _ := ask(t, 0, "restore", "--json", store+"::home", out)
	if err := unix.Stat(filepath.Join(out, "locked"), &after); err != nil || before.Ctim != after.Ctim {
		t.Errorf("it was changed: %v", err)
	}
	if !strings.Contains(said, `"dirs":0,`) || !strings.Contains(said, `"unchanged":2,`) || !strings.Contains(said, `"attrs_set":0,`) {
		t.Error(said)
	}
}
