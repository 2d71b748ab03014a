package osfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/osfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

func open(t *testing.T, dir string, o osfs.Options) osfs.FS {
	t.Helper()
	o.Report = func(err error) { t.Errorf("reported: %v", err) }
	f, err := osfs.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New:     func(t *testing.T) vfs.FS { return open(t, t.TempDir(), osfs.Options{}) },
		Callers: os.Geteuid() == 0,
		Groups:  []string{"getattr", "create", "rename", "open", "read", "write", "commit", "readdir", "handle", "identity", "powers"},
	})
}

// TestReadOnly: a directory that is served read-only, by the tree that it has.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "a/b"), 0o755),
		os.WriteFile(filepath.Join(dir, "a/b/file"), make([]byte, 100_000), 0o644),
		os.Symlink("a/b", filepath.Join(dir, "link")))
	if err != nil {
		t.Fatal(err)
	}
	vfstest.RunReadOnly(t, open(t, dir, osfs.Options{ReadOnly: true}))
}

// TestStateDir: with a directory for its state, what is served has the same handles again.
func TestStateDir(t *testing.T) {
	dir, o := t.TempDir(), osfs.Options{StateDir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	var handles [2]vfs.Handle
	for i := range handles {
		f, err := osfs.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		root, _, err := f.Root(t.Context())
		if err == nil {
			handles[i], _, _, err = f.Lookup(t.Context(), root, "file")
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if handles[0] != handles[1] {
		t.Errorf("the handle is %v, and was %v", handles[1], handles[0])
	}
}

func TestOpenFails(t *testing.T) {
	if _, err := osfs.Open(filepath.Join(t.TempDir(), "missing"), osfs.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
}
