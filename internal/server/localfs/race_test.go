//go:build linux

package localfs

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// rounds bounds the hostile races below.
const rounds = 400

// TestNothingOutside lets one goroutine exchange a directory for a symbolic link
// that leads out of the tree, again and again, while others work below the name.
func TestNothingOutside(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		dir, outside := t.TempDir(), t.TempDir()
		for p, s := range map[string]string{
			filepath.Join(outside, "file"):  "outside",
			filepath.Join(dir, "d", "file"): "inside",
		} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(s), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(outside, filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		f := open(t, dir, o)
		var over atomic.Bool
		var swapper, workers sync.WaitGroup
		swapper.Go(func() {
			for !over.Load() {
				if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "d"), unix.AT_FDCWD, filepath.Join(dir, "l"), unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
			}
		})
		workers.Go(func() { readBelow(t, f) })
		workers.Go(func() { changeBelow(t, f) })
		workers.Wait()
		over.Store(true)
		swapper.Wait()
		names, err := os.ReadDir(outside)
		if err != nil || len(names) != 1 {
			t.Errorf("outside there is %v, %v", names, err)
		}
	})
}

// readBelow reads d/file, whatever d is just now.
func readBelow(t *testing.T, f *FS) {
	for range rounds {
		d, _, _, err := f.Lookup(t.Context(), f.root, "d")
		if err != nil {
			continue
		}
		x, _, _, err := f.Lookup(t.Context(), d, "file")
		if err != nil {
			continue
		}
		if s, err := readAll(t.Context(), f, x); err == nil && s != "inside" {
			t.Errorf("read %q", s)
		}
	}
}

// changeBelow makes, renames and removes in d. Any of it may fail.
func changeBelow(t *testing.T, f *FS) {
	for range rounds {
		d, _, _, err := f.Lookup(t.Context(), f.root, "d")
		if err != nil {
			continue
		}
		_, _, _, _ = f.Create(t.Context(), d, "new", &vfs.CreateHow{Type: vfs.TypeReg})
		_, _ = f.Remove(t.Context(), d, "new", false)
		_, _, _, _ = f.Create(t.Context(), d, "dir", &vfs.CreateHow{Type: vfs.TypeDir})
		_, _, _ = f.Rename(t.Context(), d, "dir", d, "renamed")
		_, _ = f.Remove(t.Context(), d, "renamed", true)
	}
}

// TestMovedOut checks that a directory which leaves the tree is out of reach,
// also for those who had it open.
func TestMovedOut(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		base := t.TempDir()
		dir := filepath.Join(base, "export")
		for _, d := range []string{dir, filepath.Join(dir, "a"), filepath.Join(dir, "a", "b")} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		f := open(t, dir, o)
		a, _, _, err := f.Lookup(t.Context(), root(t, f), "a")
		if err != nil {
			t.Fatal(err)
		}
		b, _, _, err := f.Lookup(t.Context(), a, "b")
		if err != nil {
			t.Fatal(err)
		}
		// The name of a sibling begins like the root's.
		if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(base, "export2")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, x := range []vfs.Handle{a, b} {
				_, err := f.GetAttr(t.Context(), x, vfs.MaskV3)
				wantErr(t, err, vfs.ErrStale)
				_, _, _, err = f.Lookup(t.Context(), x, "..")
				wantErr(t, err, vfs.ErrStale)
				_, _, _, err = f.Create(t.Context(), x, "new", &vfs.CreateHow{Type: vfs.TypeReg})
				wantErr(t, err, vfs.ErrStale)
			}
		}
		if _, err := os.Stat(filepath.Join(base, "export2", "new")); err == nil {
			t.Error("something was made outside")
		}
	})
}

// TestRootIsRenamed checks that the tree goes with its root.
func TestRootIsRenamed(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		base := t.TempDir()
		dir := filepath.Join(base, "export")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		f := open(t, dir, o)
		d := mkdir(t, f, mkdir(t, f, root(t, f), "a"), "b")
		if err := os.Rename(dir, filepath.Join(base, "moved")); err != nil {
			t.Fatal(err)
		}
		mkfile(t, f, d, "x", "x")
		// Another directory now has the root's old name, and a part of the tree
		// moves there: it has left.
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(base, "moved", "a"), filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
		_, err := f.GetAttr(t.Context(), d, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
	})
}

// TestBadHandles checks that bytes of any origin name nothing outside.
func TestBadHandles(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, t.TempDir(), o)
		r := root(t, f)
		x := mkdir(t, f, r, "d")
		good := x.Bytes()
		for i := range good {
			bad := append([]byte(nil), good...)
			bad[i] ^= 0xff
			tryHandle(t, f, bad)
			tryHandle(t, f, good[:i])
		}
		tryHandle(t, f, make([]byte, vfs.MaxHandle))
		tryHandle(t, f, append(append([]byte(nil), good...), 0))
	})
}

func tryHandle(t *testing.T, f *FS, b []byte) {
	t.Helper()
	x, err := vfs.MakeHandle(b)
	if err == nil {
		_, err = f.GetAttr(t.Context(), x, vfs.MaskV3)
	}
	if s, _ := vfs.StatusOf(err); s != vfs.ErrBadHandle && s != vfs.ErrStale {
		t.Errorf("handle %x: %v", b, err)
	}
}
