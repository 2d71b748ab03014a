package dirfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// FuzzHandle hands out handles that nobody has made.
func FuzzHandle(f *testing.F) {
	for _, r := range []ref{
		{kind: vfs.TypeDir, id: ident{1, 2, 3, 4}},
		{kind: vfs.TypeReg, slot: 1, id: ident{1, 2, 3, 4}, name: "name"},
		{kind: vfs.TypeSymlink, slot: 1, id: ident{1, 2, 3, 4}, name: strings.Repeat("n", vfs.MaxName)},
	} {
		h := r.handle()
		f.Add(h.Bytes())
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\x00", "../etc"} {
		p := append([]byte{byte(vfs.TypeReg)}, bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 5)...)
		f.Add(append(append(p, byte(len(name))), name...))
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600); err != nil {
		f.Fatal(err)
	}
	fsys := open(f, dir, Options{Descriptors: 40})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := vfs.MakeHandle(b)
		if err != nil {
			return
		}
		if r, err := parse(h); err == nil && r.hash == 0 {
			if again := r.handle(); again != h && r.slot != 0 {
				t.Errorf("%x becomes %v", b, again)
			}
		}
		_, err = fsys.GetAttr(t.Context(), h, vfs.MaskV3)
		if !errors.Is(err, vfs.ErrBadHandle) && !errors.Is(err, vfs.ErrStale) {
			t.Errorf("%x: %v", b, err)
		}
		_, _, _, err = fsys.Lookup(t.Context(), h, "file")
		if !errors.Is(err, vfs.ErrBadHandle) && !errors.Is(err, vfs.ErrStale) {
			t.Errorf("%x: lookup: %v", b, err)
		}
	})
}

// TestAnotherObject puts something else under a name: the handle means the first, or
// nothing.
func TestAnotherObject(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir, Options{})
	root, _, err := f.Root(t.Context())
	must(t, err)
	path := filepath.Join(dir, "name")
	for _, other := range []func() error{
		func() error { return os.WriteFile(path, []byte("other"), 0o600) },
		func() error { return os.Symlink("/etc/passwd", path) },
		func() error { return os.Mkdir(path, 0o700) },
		func() error { return os.Rename(filepath.Join(dir, "there"), path) },
	} {
		must(t, os.WriteFile(path, []byte("first"), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "there"), []byte("other"), 0o600))
		h, _, _, err := f.Lookup(t.Context(), root, "name")
		must(t, err)
		must(t, os.Rename(path, filepath.Join(dir, "first"))) // its number is not used again
		must(t, other())
		if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("getattr: %v", err)
		}
		if _, _, err := f.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite}); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("open: %v", err)
		}
		if _, err := f.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o777}, nil); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("setattr: %v", err)
		}
		must(t, os.RemoveAll(path))
	}
}

// TestManyLongNames has more names than are kept that fit no handle, and more renames
// than are known.
func TestManyLongNames(t *testing.T) {
	f := open(t, t.TempDir(), Options{})
	root, _, err := f.Root(t.Context())
	must(t, err)
	const n = maxLong + maxMoved/2
	handles := make([]vfs.Handle, n)
	for i := range handles {
		name := fmt.Sprintf("%s%06d", strings.Repeat("long", 60), i)
		handles[i], _, _, err = f.Create(t.Context(), root, "temporary", &vfs.CreateHow{Type: vfs.TypeReg})
		must(t, err)
		_, _, err = f.Rename(t.Context(), root, "temporary", root, name)
		must(t, err)
		found, _, _, err := f.Lookup(t.Context(), root, name)
		must(t, err)
		if i%2 == 0 {
			handles[i] = found
		}
	}
	for _, i := range []int{0, 1, 2, 3, n / 2, n - 2, n - 1} {
		if _, err := f.GetAttr(t.Context(), handles[i], vfs.MaskV3); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
