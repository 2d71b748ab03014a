//go:build linux

package localfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// bareSys is a Sys that can do no more than it must.
type bareSys struct{ Sys }

// TestRename renames as rename(2) does, which is asked in a twin of the directory,
// with and without a Sys that can move without replacing.
func TestRename(t *testing.T) {
	for _, sys := range []Sys{nil, bareSys{linux.OS{}}} {
		bothModes(t, func(t *testing.T, o Options) {
			o.Sys = sys // a Sys that is nil is the operating system's
			for _, c := range [][2]string{
				{"file", "free"}, {"file", "\xff\xfe"}, {"file", "other"}, {"file", "link"}, {"link", "file"}, {"file", "file"},
				{"none", "free"}, {"none", "other"}, {"file", "dir"}, {"dir", "file"}, {"dir", "empty"}, {"empty", "dir"},
				{"dir", "free"}, {"symlink", "file"}, {"file", "symlink"}, {"other", "link"},
			} {
				testRename(t, o, c[0], c[1], "dir/sub")
				testRename(t, o, c[0], c[1], "")
			}
		})
	}
}

// renameTree makes the names of the test in dir, and in its directory sub.
func renameTree(t *testing.T, dir string) string {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(in("file"), []byte("file"), 0o644), os.Link(in("file"), in("link")),
		os.WriteFile(in("other"), []byte("other"), 0o644), os.Mkdir(in("empty"), 0o755), os.Symlink("file", in("symlink")),
		os.MkdirAll(in("dir/sub"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// testRename moves from to to, which is in the directory into.
func testRename(t *testing.T, o Options, from, to, into string) {
	t.Helper()
	if o.StateDir != "" {
		o.StateDir = t.TempDir()
	}
	dir, twin := renameTree(t, t.TempDir()), renameTree(t, t.TempDir())
	f := open(t, dir, o)
	target := f.root
	if into != "" {
		target, _, _, _ = f.Lookup(t.Context(), f.root, "dir")
		target, _, _, _ = f.Lookup(t.Context(), target, "sub")
	}
	x, _, _, _ := f.Lookup(t.Context(), f.root, from)
	y, was, _, _ := f.Lookup(t.Context(), target, to)
	want := unix.Rename(filepath.Join(twin, from), filepath.Join(twin, into, to))
	fromWCC, toWCC, err := f.Rename(t.Context(), f.root, from, target, to)
	if s, _ := vfs.StatusOf(err); (err == nil) != (want == nil) || err != nil && !errors.Is(linux.Fail("", want), s) {
		t.Errorf("%s to %s/%s: %v, want %v", from, into, to, err, want)
	}
	for d, wcc := range map[vfs.Handle]vfs.WCC{f.root: fromWCC, target: toWCC} {
		now, err := f.GetAttr(t.Context(), d, vfs.MaskV3)
		if err != nil || wcc.After != now || wcc.Before.Valid == 0 {
			t.Errorf("%s to %s/%s: %+v of a directory that is %+v, %v", from, into, to, wcc, now, err)
		}
	}
	if got, want := names(t, dir), names(t, twin); !slices.Equal(got, want) {
		t.Errorf("%s to %s/%s: %v, want %v", from, into, to, got, want)
	}
	if err != nil {
		return
	}
	if z, _, _, err := f.Lookup(t.Context(), target, to); err != nil || z != x {
		t.Errorf("%s to %s/%s: what is there now: %v, want %v, %v", from, into, to, z, x, err)
	}
	if was.Nlink == 1 && y != x || was.Type == vfs.TypeDir {
		_, err := f.GetAttr(t.Context(), y, vfs.MaskV3)
		wantErr(t, err, vfs.ErrStale)
	}
}

// names are the names below dir, with what files hold.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		var raw []byte
		if e.Type().IsRegular() {
			raw, err = os.ReadFile(path)
		}
		all = append(all, rel+" "+e.Type().String()+" "+string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// swapping exchanges two names of a directory whenever the map of handles is synced.
type swapping struct {
	linux.OS
	a, b string
	left atomic.Int32
}

func (s *swapping) Fdatasync(fd int) error {
	if s.left.Add(-1) >= 0 {
		if err := unix.Renameat2(unix.AT_FDCWD, s.a, unix.AT_FDCWD, s.b, unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
	return s.OS.Fdatasync(fd)
}

// TestRenameUntold: after the move of a file was noted in the map, a local program
// puts another in its place. That one is moved, and found by its handle after a
// restart; and if it goes on like that, nothing is moved.
func TestRenameUntold(t *testing.T) {
	for _, swaps := range []int32{1, 2, 3, 1000} {
		dir := renameTree(t, t.TempDir())
		sys := &swapping{a: filepath.Join(dir, "file"), b: filepath.Join(dir, "other")}
		o := Options{Handles: HandlesMap, StateDir: t.TempDir(), Sys: sys}
		f, err := New(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeFS(t, f) })
		handles := map[string]vfs.Handle{}
		for _, name := range []string{"file", "other"} {
			x, _, _, err := f.Lookup(t.Context(), f.root, name)
			if err != nil {
				t.Fatal(err)
			}
			handles[name] = x
		}
		sys.left.Store(swaps)
		_, _, err = f.Rename(t.Context(), f.root, "file", f.root, "moved")
		sys.left.Store(0)
		if swaps > maxRaces {
			wantErr(t, err, vfs.ErrBusy)
			if _, err := os.Lstat(filepath.Join(dir, "moved")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%d swaps: moved: %v", swaps, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "moved"))
		if err != nil {
			t.Fatal(err)
		}
		f = reopenFS(t, f, dir, o)
		for name, x := range handles {
			if got := content(t, f, x); got != name {
				t.Errorf("%d swaps, %s moved: the handle of %s leads to %q", swaps, raw, name, got)
			}
		}
		if x, _, _, err := f.Lookup(t.Context(), f.root, "moved"); err != nil || x != handles[string(raw)] {
			t.Errorf("%d swaps: the handle of what was moved is another: %v", swaps, err)
		}
	}
}
