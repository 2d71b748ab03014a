package dirfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestSyncOnWindows: a file, a read-only file and a directory are synced without an error,
// and a directory that is gone is stale.
func TestSyncOnWindows(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"file": 0o644, "read-only": 0o444} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.Mkdir(filepath.Join(dir, "gone"), 0o755)); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir, Options{})
	root, _, err := f.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	handles := map[string]vfs.Handle{".": root}
	for _, name := range []string{"file", "read-only", "sub", "gone"} {
		if handles[name], _, _, err = f.Lookup(t.Context(), root, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	for name, h := range handles {
		if err := f.Sync(t.Context(), h); errors.Is(err, vfs.ErrStale) != (name == "gone") || err != nil && name != "gone" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&hostDir{f.slots.root.dir.root, "sub"}).sync(); err != nil {
		t.Errorf("the flush of a directory: %v", err)
	}
}
