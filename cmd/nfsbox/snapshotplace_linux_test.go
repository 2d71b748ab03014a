package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keptTree is a store with a snapshot of a tree, which has changed since; both are named from the current directory.
func keptTree(t *testing.T) (text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"a": "alpha\n", "d/50% b?": "beta\n", "d/[c]*": "gamma\n", "d/x::y/z": "zeta\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join("tree", name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("tree", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("d/50% b?", "tree/link"); err != nil {
		t.Fatal(err)
	}
	return keepSnapshot(t, "store", "tree", "home", time.Now().Add(-time.Hour))
}

// TestSnapshotIsPlace: every command that looks at a place looks at a snapshot.
func TestSnapshotIsPlace(t *testing.T) {
	text := keptTree(t)
	for _, c := range []struct{ args, want string }{
		{"ls store::home", "a\nd\nlink\n"},
		{"ls store::home/", "a\nd\nlink\n"},
		{"ls ./store/::" + text + "/d", "50% b?\n[c]*\nx::y\n"},
		{"cat store::home/a", "alpha\n"},
		{"cat --tail 1 store::home/link", "beta\n"},
		{"cat store::home/d/50%| b?", "beta\n"},
		{"cat store::home/d/[c]*", "gamma\n"},
		{"cat store::home/d/x::y/z", "zeta\n"},
		{"find store::home -name z", "store::home/d/x::y/z\n"},
		{"find store::home/d -type d", "store::home/d\nstore::home/d/x::y\n"},
		{"grep -r gam store::home", "store::home/d/[c]*:gamma\n"},
		{"stat store::home/a", "store::home/a"},
		{"du store::home", "store::home"},
		{"scan store::home", ""},
		{"verify tree store::home", ""},
		{"verify store::home tree", ""},
	} {
		args := strings.Fields(c.args)
		for i := range args {
			if next := i + 1; strings.HasSuffix(args[i], "|") && next < len(args) {
				args = append(args[:i], strings.TrimSuffix(args[i], "|")+" "+args[next])
				break
			}
		}
		if out, _ := ask(t, 0, args...); !strings.Contains(out, c.want) {
			t.Errorf("%q prints %q, want %q", args, out, c.want)
		}
	}
	ask(t, 0, "cp", "-r", "store::home", "store::home/d/x::y", ".")
	if got, err := os.ReadFile("home/d/50% b?"); err != nil || string(got) != "beta\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := os.ReadFile("x::y/z"); err != nil || string(got) != "zeta\n" {
		t.Errorf("%q, %v", got, err)
	}
	ask(t, 0, "verify", "store::home", "home")
	if err := os.WriteFile("tree/a", []byte("other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said := ask(t, exitDiffers, "verify", "tree", "store::home"); !strings.Contains(said, "content: a:") {
		t.Error(said)
	}
}

// TestSnapshotCompleted: behind "::" names of snapshots are offered, and behind "@" ids.
func TestSnapshotCompleted(t *testing.T) {
	text := keptTree(t)
	for word, want := range map[string]string{
		"store::": "store::home\n", "./store::ho": "./store::home\n", "store::home@2": "store::" + text + "\n",
		"store::x": "", "tree::": "", "none::": "", "store::HO": "", "::": "",
	} {
		found := make(chan []string, 1)
		(&env{}).complete(t.Context(), word, found)
		if got := <-found; strings.Join(append(got, ""), "\n") != want {
			t.Errorf("%q becomes %q, want %q", word, got, want)
		}
	}
}

// TestSnapshotIsReadOnly: nothing can be changed in a snapshot, what is not there is told with what is, and a path of this host wins.
func TestSnapshotIsReadOnly(t *testing.T) {
	keptTree(t)
	for _, c := range []struct {
		status     int
		args, want string
	}{
		{exitUsage, "cp tree/a store::home/new", "a snapshot is read-only"},
		{exitUsage, "sync tree store::home", "a snapshot is read-only"},
		{exitUsage, "mkdir store::home/new", "a snapshot is read-only"},
		{exitUsage, "touch store::home/a", "a snapshot is read-only"},
		{exitUsage, "ls store::hoem", "did you mean home?"},
		{exitUsage, "ls store::another", "the store has home"},
		{exitUsage, "ls store::Home", "not a name of snapshots"},
		{exitUsage, "ls store::home@20010101t000000.000z", "snapshots ls lists those of that name"},
		{exitUnreachable, "ls tree::home", "no .nfsbox-store"},
		{exitIncomplete, "ls none::home", "no such file"},
		{exitIncomplete, "cat store::home/none", "no such file"},
		{exitIncomplete, "ls store::home/a/", "not a directory"},
	} {
		if _, said := ask(t, c.status, strings.Fields(c.args)...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.args, said)
		}
	}
	if err := os.WriteFile("store::home", []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := ask(t, 0, "cat", "store::home"); out != "mine\n" {
		t.Error(out)
	}
}
