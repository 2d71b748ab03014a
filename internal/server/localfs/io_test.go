//go:build linux

package localfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

func TestReadAllocatesNothing(t *testing.T) {
	f := volatileFS(t, Options{})
	file := openFile(t, f, mkfile(t, f, root(t, f), "x", "some data"))
	ctx, p := context.Background(), make([]byte, 16)
	var post vfs.Attr
	var w vfs.Written
	if n := testing.AllocsPerRun(100, func() {
		if n, eof, err := file.ReadAt(ctx, p, 0, &post); n != 9 || !eof || err != nil {
			t.Fatal(n, eof, err)
		}
	}); n != 0 {
		t.Errorf("a read allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if n, err := file.WriteAt(ctx, p[:9], 0, vfs.Unstable, &w); n != 9 || err != nil {
			t.Fatal(n, err)
		}
	}); n != 0 {
		t.Errorf("a write allocates %v times", n)
	}
}

func TestListingAllocatesNothingPerEntry(t *testing.T) {
	dir := t.TempDir()
	const files = 500
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bothModes(t, func(t *testing.T, o Options) {
		f := open(t, dir, o)
		r := root(t, f)
		list := func() {
			n := 0
			for _, err := range f.ReadDir(t.Context(), r, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != files {
				t.Fatalf("%d entries", n)
			}
		}
		if n := testing.AllocsPerRun(5, list); n > files/10 {
			t.Errorf("%v allocations for %d entries", n, files)
		}
	})
}

func TestListingGoesOn(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		dir := inMemory(t)
		f, err := New(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		r := root(t, f)
		for i := range 600 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file ", i)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		seen := make(map[string]int)
		var at vfs.Pos
		for page := 0; ; page++ {
			n := 0
			for e, err := range f.ReadDir(t.Context(), r, at, vfs.MaskType, 4096) {
				if err != nil {
					t.Fatal(err)
				}
				seen[string(e.Name)]++
				at = e.Next
				if n++; n == 60 {
					break
				}
			}
			if n == 0 {
				break
			}
			if page == 5 {
				f = reopenFS(t, f, dir, o)
			}
			// What comes and goes meanwhile disturbs nobody.
			name := fmt.Sprint("file ", page*20)
			if _, err := f.Remove(t.Context(), r, name, false); err != nil {
				t.Fatal(err)
			}
			mkdir(t, f, r, fmt.Sprint("new ", page))
		}
		for i := range 600 {
			name := fmt.Sprint("file ", i)
			if n := seen[name]; n != 1 && (n != 0 || i%20 != 0) {
				t.Errorf("%s was listed %d times", name, n)
			}
		}
		closeFS(t, f)
	})
}

func TestBadCookie(t *testing.T) {
	f := volatileFS(t, Options{})
	for _, p := range []vfs.Pos{{Cookie: 7}, {Cookie: 1 << 63, Verf: cookieVerf}} {
		for _, err := range f.ReadDir(t.Context(), root(t, f), p, 0, 0) {
			wantErr(t, err, vfs.ErrBadCookie)
		}
	}
}

func TestModeIsExact(t *testing.T) {
	f := volatileFS(t, Options{})
	r := root(t, f)
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	for i, how := range []*vfs.CreateHow{
		{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}},
		{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0}},
		{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o1777}},
		{Type: vfs.TypeFIFO, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o622}},
		{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskSize, Mode: 0o4755, Size: 100}},
	} {
		_, a, _, err := f.Create(t.Context(), r, fmt.Sprint(i), how)
		if err != nil || a.Mode != how.Set.Mode {
			t.Errorf("%s: mode %o, want %o; %v", how.Type, a.Mode, how.Set.Mode, err)
		}
	}
}

func TestHostFile(t *testing.T) {
	f := volatileFS(t, Options{MaxOpen: 16})
	file := openFile(t, f, mkfile(t, f, root(t, f), "x", "host"))
	host, ok := vfs.As[vfs.HostFiler](file)
	if !ok {
		t.Fatal("no HostFiler")
	}
	h, release, ok := host.HostFile()
	if !ok {
		t.Fatal("no host file")
	}
	p := make([]byte, 9)
	if n, _ := h.ReadAt(p, 0); string(p[:n]) != "host" {
		t.Errorf("read %q", p[:n])
	}
	release()
	release() // once more does nothing
	if _, err := h.Stat(); err == nil {
		t.Error("the descriptor is still open")
	}
	for range 100 {
		_, release, ok := host.HostFile()
		if !ok {
			return
		}
		defer release()
	}
	t.Error("the descriptors lent out are not bounded")
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir, Options{Handles: HandlesMap, Volatile: true, ReadOnly: true})
	r := root(t, f)
	x, _, _, err := f.Lookup(t.Context(), r, "x")
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = f.Create(t.Context(), r, "y", &vfs.CreateHow{Type: vfs.TypeDir})
	wantErr(t, err, vfs.ErrROFS)
	_, err = f.Remove(t.Context(), r, "x", false)
	wantErr(t, err, vfs.ErrROFS)
	_, _, err = f.Rename(t.Context(), r, "x", r, "y")
	wantErr(t, err, vfs.ErrROFS)
	_, _, err = f.Link(t.Context(), x, r, "y")
	wantErr(t, err, vfs.ErrROFS)
	wantErr(t, chmod(t, f, x, 0), vfs.ErrROFS)
	wantErr(t, write(t, f, x), vfs.ErrROFS)
	got, _, err := f.Access(t.Context(), x, vfs.AccessRead|vfs.AccessModify|vfs.AccessExtend)
	if err != nil || got != vfs.AccessRead {
		t.Errorf("rights %#x, %v", got, err)
	}
}

// TestMountPointIsHidden needs no mount of its own: /dev has some.
func TestMountPointIsHidden(t *testing.T) {
	var dev, shm linux.Stat
	if dev.At(unix.AT_FDCWD, "/dev") != nil || shm.At(unix.AT_FDCWD, "/dev/shm") != nil || dev.Mnt_id == shm.Mnt_id {
		t.Skip("/dev/shm is no mount point here")
	}
	reports := 0
	f := open(t, "/dev", Options{Handles: HandlesMap, Volatile: true, ReadOnly: true, Report: func(error) { reports++ }})
	r := root(t, f)
	for range 2 {
		_, _, _, err := f.Lookup(t.Context(), r, "shm")
		wantErr(t, err, vfs.ErrNoEnt)
		for e, err := range f.ReadDir(t.Context(), r, vfs.Pos{}, vfs.MaskV3, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Name) == "shm" {
				t.Error("a mount point is listed")
			}
		}
	}
	if reports == 0 {
		t.Error("nobody was told")
	}
	g := open(t, "/dev", Options{Volatile: true, ReadOnly: true, CrossMounts: true})
	x, _, _, err := g.Lookup(t.Context(), root(t, g), "shm")
	if err != nil {
		t.Fatal(err)
	}
	if p, _, _, err := g.Lookup(t.Context(), x, ".."); err != nil || p != root(t, g) {
		t.Errorf("shm/.. is %v, %v", p, err)
	}
}
