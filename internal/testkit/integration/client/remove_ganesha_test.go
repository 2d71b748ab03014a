//go:build linux

package client

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/tools/remove"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestRemoveGanesha: a directory of 20,000 names, which nfs-ganesha lists while it is emptied, and links out of the tree.
func TestRemoveGanesha(t *testing.T) {
	need.Time(t, "a large directory that nfs-ganesha lists while it is emptied")
	t.Parallel() // it waits for the disk
	dir, url := startGanesha(t)
	const names = 20_000
	wide := filepath.Join(dir, "tree", "wide")
	for _, err := range []error{
		os.MkdirAll(wide, 0o755), os.Mkdir(filepath.Join(dir, "out"), 0o755), os.WriteFile(filepath.Join(dir, "out", "precious"), nil, 0o644),
		os.Symlink("../out", filepath.Join(dir, "tree", "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range names {
		f, err := os.Create(filepath.Join(wide, fmt.Sprint("a-name-of-some-length-", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fs := dial(t, url).FS()
	root, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var removed atomic.Int64
	r := remove.New(t.Context(), fs, remove.Options{
		Ask:     func(string, vfs.Type) (bool, error) { return true, nil },
		Removed: func(string, vfs.Type) { removed.Add(1) },
		Failed:  func(path string, err error) error { return fmt.Errorf("%s: %w", path, err) },
	})
	err = r.Remove(remove.Target{Dir: root, Name: "tree", Path: "tree"})
	if werr := r.Wait(); err != nil || werr != nil {
		t.Fatal(err, werr)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || removed.Load() != names+3 {
		t.Errorf("%d were removed, and left are %v (%v)", removed.Load(), left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "precious")); err != nil {
		t.Error(err)
	}
}
