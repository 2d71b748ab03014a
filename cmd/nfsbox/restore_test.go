package main

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// restoreBed is a tree, and a store that has a snapshot of it.
type restoreBed struct {
	t           *testing.T
	tree, store string
	text        string // NAME@ID
}

func newRestoreBed(t *testing.T) *restoreBed {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	b := &restoreBed{t: t, tree: t.TempDir(), store: filepath.Join(t.TempDir(), "store")}
	b.write("a", []byte("a"))
	b.write("d/small", []byte("small"))
	b.write("d/e/deep", []byte("deep"))
	noise := make([]byte, 300<<10)                  // an object of its own
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // it does not fail
	b.write("d/big", noise)
	for _, err := range []error{
		os.Link(filepath.Join(b.tree, "a"), filepath.Join(b.tree, "d/linked")), os.Symlink("../a", filepath.Join(b.tree, "d/link")),
		os.Chmod(filepath.Join(b.tree, "d/small"), 0o604), os.Chmod(filepath.Join(b.tree, "d/e"), 0o711),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.text = keepSnapshot(t, b.store, b.tree, "home", time.Now().Add(-time.Hour))
	return b
}

func (b *restoreBed) write(name string, content []byte) {
	b.t.Helper()
	at := filepath.Join(b.tree, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(at, content, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *restoreBed) read(path string) string {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// bigObject is the key of the object that d/big is in.
func (b *restoreBed) bigObject(s object.Store) (key string) {
	b.t.Helper()
	for info, err := range object.All(b.t.Context(), s, "sha256/") {
		if err != nil {
			b.t.Fatal(err)
		}
		if info.Size >= 300<<10 {
			key = info.Key
		}
	}
	return key
}

// TestRestore: a snapshot comes back as it was, whole or in part.
func TestRestore(t *testing.T) {
	b := newRestoreBed(t)
	out := filepath.Join(t.TempDir(), "out")
	_, said := ask(t, 0, "restore", "--verify", "--progress=none", b.store+"::home", out)
	if !strings.Contains(said, "snapshot: "+b.text+"\nrestored: 4 files, 3 directories, 1 symbolic link, 1 hard link\n4 verified\n") {
		t.Error(said)
	}
	ask(t, 0, "verify", "-q", "--owner", b.tree, out)
	if stdout, _ := ask(t, 0, "restore", "--json", b.store+"::home", out); !strings.Contains(stdout, `"unchanged":9`) || !strings.Contains(stdout, `"snapshot":"`+b.text+`"`) {
		t.Error(stdout)
	}

	part := filepath.Join(t.TempDir(), "part")
	ask(t, 0, "restore", "-q", b.store+"::"+b.text+"/d/e/", part)
	ask(t, 0, "verify", "-q", filepath.Join(b.tree, "d/e"), part)
	ask(t, 0, "restore", "-q", b.store+"::home/d/small", part)
	ask(t, 0, "restore", "-q", b.store+"::home/d/link", filepath.Join(part, "to"))
	if to, err := os.Readlink(filepath.Join(part, "to")); err != nil || to != "../a" {
		t.Errorf("%q, %v", to, err)
	}
	if b.read(filepath.Join(part, "small")) != "small" || b.read(filepath.Join(part, "deep")) != "deep" {
		t.Error("a file goes into a directory, and what was there stays")
	}
	chosen := filepath.Join(t.TempDir(), "chosen")
	ask(t, 0, "restore", "-q", "--include", "deep", "--include", "*/", "--exclude", "*", b.store+"::home", chosen)
	if _, err := os.Lstat(filepath.Join(chosen, "a")); err == nil || b.read(filepath.Join(chosen, "d/e/deep")) != "deep" {
		t.Errorf("rules: %v", err)
	}
}

// TestRestoreOverwrite: each of the three ways with what is there.
func TestRestoreOverwrite(t *testing.T) {
	b := newRestoreBed(t)
	outside := t.TempDir()
	for how, want := range map[string][3]string{"never": {"mine", "other", "SMALL"}, "changed": {"a", "other", "SMALL"}, "always": {"a", "other", "small"}} {
		out := filepath.Join(t.TempDir(), "out")
		ask(t, 0, "restore", "-q", b.store+"::home", out)
		info, err := os.Stat(filepath.Join(out, "d/small"))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			os.Remove(filepath.Join(out, "a")), os.WriteFile(filepath.Join(out, "a"), []byte("mine"), 0o600), os.WriteFile(filepath.Join(out, "mine"), []byte("other"), 0o600),
			os.WriteFile(filepath.Join(out, "d/small"), []byte("SMALL"), 0o604), os.Chtimes(filepath.Join(out, "d/small"), time.Time{}, info.ModTime()),
			os.RemoveAll(filepath.Join(out, "d/e")), os.Symlink(outside, filepath.Join(out, "d/e")), // leads out, and is in the way
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		dry, _ := ask(t, 2, "restore", "-n", "--json", "--overwrite="+how, b.store+"::home", out)
		if would := strings.Contains(dry, `"kind":"copy","path":"a"`); would != (how != "never") {
			t.Errorf("%s: %s", how, dry)
		}
		_, said := ask(t, 2, "restore", "-q", "--overwrite="+how, b.store+"::home", out)
		if !strings.Contains(said, "d/e: a symlink is in the way of the directory") {
			t.Errorf("%s: %s", how, said)
		}
		got := [3]string{b.read(filepath.Join(out, "a")), b.read(filepath.Join(out, "mine")), b.read(filepath.Join(out, "d/small"))}
		if got != want {
			t.Errorf("%s: %q, want %q", how, got, want)
		}
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) > 0 {
		t.Errorf("through a link came %v, %v", list, err)
	}
}

// TestRestoreDamaged: what a damaged object hurts fails, each time, and has no name; all else is restored. When the object
// is back, the same command restores the rest.
func TestRestoreDamaged(t *testing.T) {
	b := newRestoreBed(t)
	var whole []byte
	var key string
	withStore(t, b.store, func(s object.Store) {
		key = b.bigObject(s)
		r, _, err := s.Get(t.Context(), key, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		if _, err := all.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		whole = all.Bytes()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	})
	said, advised := ask(t, 2, "snapshots", "check", "--progress=none", b.store)
	if !strings.Contains(advised, "nfsbox backup --verify mends") {
		t.Error(advised)
	}
	if strings.Count(said, key) != 1 || !strings.Contains(said, "damaged: object "+key+": ") || !strings.Contains(said, "  hurts "+b.text+": d/big\n") {
		t.Error(said)
	}
	if said, _ := ask(t, 2, "snapshots", "check", "--json", b.store); !strings.Contains(said, `"type":"damage","object":"`+key+`","problem":"missing"`) ||
		!strings.Contains(said, `"damaged_objects":1,"hurt_names":1,"hurt_snapshots":1,"errors":1,`) {
		t.Error(said)
	}
	out := filepath.Join(t.TempDir(), "out")
	for _, job := range []string{"", "--job=again"} {
		args := []string{"restore", "--progress=none", b.store + "::home", out}
		if job != "" {
			args = append(args, job)
		}
		for range 2 {
			_, said := ask(t, 2, args...)
			if !strings.Contains(said, "d/big: ") || !strings.Contains(said, key) || !strings.Contains(said, "failed: 1 item") || strings.Contains(said, "to try again") ||
				!strings.Contains(said, "nfsbox backup --verify mends") || !strings.Contains(said, "when the store is mended: ") || strings.Count(said, key) != 1 {
				t.Error(said)
			}
			if _, err := os.Lstat(filepath.Join(out, "d/big")); err == nil {
				t.Error("what could not be read has its name")
			}
		}
		if b.read(filepath.Join(out, "d/e/deep")) != "deep" {
			t.Error("what is not damaged is missing")
		}
	}
	withStore(t, b.store, func(s object.Store) {
		if _, err := s.Put(t.Context(), key, bytes.NewReader(whole), object.PutOptions{Size: int64(len(whole))}); err != nil {
			t.Fatal(err)
		}
	})
	stdout, _ := ask(t, 0, "restore", "--json", "--progress=none", b.store+"::home", out)
	if !strings.Contains(stdout, `"summary","files":1,`) {
		t.Error(stdout)
	}
	ask(t, 0, "verify", "-q", "--owner", b.tree, out)
}

// TestRestoreFileInTheWay: what is in the way is named, and the directory is not said to be none.
func TestRestoreFileInTheWay(t *testing.T) {
	b := newRestoreBed(t)
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "d"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, said := ask(t, 2, "restore", "--progress=none", b.store+"::home", out)
	if !strings.Contains(said, "d: a file is in the way of the directory") || strings.Contains(said, "not a directory") {
		t.Error(said)
	}
}

// TestRestoreAnother: what goes on with a newer snapshot says so, with and without a name.
func TestRestoreAnother(t *testing.T) {
	for _, job := range []string{"--no-owner", "--job=again"} {
		b := newRestoreBed(t)
		withStore(t, b.store, func(s object.Store) {
			if err := s.Delete(t.Context(), b.bigObject(s)); err != nil {
				t.Fatal(err)
			}
		})
		out := filepath.Join(t.TempDir(), "out")
		ask(t, 2, "restore", "-q", job, b.store+"::home", out)
		b.write("newer", []byte("newer"))
		b.write("d/big", []byte("smaller now"))
		newer := keepSnapshot(t, b.store, b.tree, "home", time.Now())
		_, said := ask(t, 0, "restore", "--progress=none", job, b.store+"::home", out)
		if !strings.Contains(said, "it began with another snapshot, and goes on with "+newer) {
			t.Errorf("%s: %s", job, said)
		}
		ask(t, 0, "verify", "-q", b.tree, out)
	}
}

// TestRestoreIncomplete: an incomplete snapshot is restored if its ID is given, and said to be one.
func TestRestoreIncomplete(t *testing.T) {
	b := newRestoreBed(t)
	var id string
	withStore(t, b.store, func(s object.Store) {
		w, err := snapshot.NewWriter(s)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		root := &snapshot.Entry{Attr: vfs.Attr{Valid: vfs.MaskType | vfs.MaskMode | vfs.MaskMtime, Type: vfs.TypeDir, Mode: 0o755, Mtime: now}}
		if err := w.Dir("").Close(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		if id, err = w.Finish(t.Context(), snapshot.Meta{Name: "home", Time: now}, root); err != nil {
			t.Fatal(err)
		}
	})
	out := filepath.Join(t.TempDir(), "out")
	_, said := ask(t, 0, "restore", "--progress=none", b.store+"::home@"+id, out)
	if !strings.Contains(said, "home@"+id+" is incomplete: what could not be read when it was taken is not in it") {
		t.Error(said)
	}
	if _, said := ask(t, 0, "restore", "--progress=none", b.store+"::home", out); !strings.Contains(said, b.text) {
		t.Error(said)
	}
	ask(t, 0, "verify", "-q", b.tree, out)
	if list, _ := ask(t, 0, "snapshots", "ls", b.store); !strings.Contains(list, id+"  INCOMPLETE") {
		t.Error(list)
	}
}

// TestRestoreRefused: what is no snapshot, and a PLACE in the store, before anything is made.
func TestRestoreRefused(t *testing.T) {
	b := newRestoreBed(t)
	dest := t.TempDir()
	for _, c := range []struct {
		status int
		args   string
		want   string
	}{
		{1, "STORE DEST/x", "names no snapshot"},
		{4, "STORE/none::home DEST/x", "there is no such directory"},
		{4, "TREE::home DEST/x", "there is no .nfsbox-store in it"},
		{1, "STORE::hom DEST/x", "did you mean home?"},
		{1, "STORE::home STORE/x", "lies within the store"},
		{1, "STORE::home STORE", "lies within the store"},
		{1, "STORE::home TREE/a", "is not a directory"},
		{2, "STORE::home/none DEST/x", "no such file"},
		{2, "STORE::home DEST/none/x", "no such file"},
		{1, "--overwrite=x STORE::home DEST/x", "must be one of"},
		{1, "--parallel=-1 STORE::home DEST/x", "--parallel takes"},
		{1, "--map-uid=1:2 --no-owner STORE::home DEST/x", "--no-owner that it gets none"},
	} {
		_, said := ask(t, c.status, append([]string{"restore"}, strings.Fields(strings.NewReplacer("STORE", b.store, "TREE", b.tree, "DEST", dest).Replace(c.args))...)...)
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", c.args, said)
		}
	}
	if err := filepath.WalkDir(dest, func(path string, _ fs.DirEntry, err error) error {
		if path != dest {
			t.Errorf("%s was made", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
