package dirfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// visit lists a tree as a walk does, and forgets each directory that it leaves.
func visit(ctx context.Context, f *FS, dir vfs.Handle) (n int, err error) {
	defer f.Forget(dir)
	var dirs []vfs.Handle
	for e, err := range f.ReadDir(ctx, dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			return n, err
		}
		n++
		if e.Attr.Type == vfs.TypeDir {
			dirs = append(dirs, e.Handle)
		}
	}
	for _, d := range dirs {
		m, err := visit(ctx, f, d)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestForget lists more directories than are kept of the forgotten: what is known of
// them must not grow.
func TestForget(t *testing.T) {
	need.Time(t, "more directories than are kept of the forgotten")
	top := t.TempDir()
	const n = maxForgotten + 500
	for i := range n {
		must(t, os.MkdirAll(filepath.Join(top, fmt.Sprint(i%20), fmt.Sprint(i)), 0o700))
	}
	f := open(t, top, Options{Descriptors: 40})
	root, _, err := f.Root(t.Context())
	must(t, err)
	for range 2 {
		got, err := visit(t.Context(), f, root)
		if must(t, err); got != n+20 {
			t.Fatalf("%d entries, want %d", got, n+20)
		}
		if known := len(f.slots.bySerial); known > maxForgotten+1+20 { // those that have directories in them
			t.Errorf("%d directories are known", known)
		}
	}
	if f.slots.forgotten.Len() != maxForgotten || len(f.slots.byID) != len(f.slots.bySerial) {
		t.Errorf("%d forgotten, %d and %d known", f.slots.forgotten.Len(), len(f.slots.byID), len(f.slots.bySerial))
	}
}

// TestForgottenWhileHeld forgets a directory whose listing goes on.
func TestForgottenWhileHeld(t *testing.T) {
	f := open(t, t.TempDir(), Options{})
	root, _, err := f.Root(t.Context())
	must(t, err)
	dir, _, _, err := f.Create(t.Context(), root, "dir", &vfs.CreateHow{Type: vfs.TypeDir})
	must(t, err)
	for i := range 200 {
		_, _, _, err := f.Create(t.Context(), dir, fmt.Sprint(i), &vfs.CreateHow{Type: vfs.TypeReg})
		must(t, err)
	}
	n := 0
	for e, err := range f.ReadDir(t.Context(), dir, vfs.Pos{}, vfs.MaskHandle, 0) {
		must(t, err)
		f.Forget(dir)
		_, err := f.GetAttr(t.Context(), e.Handle, vfs.MaskV3)
		must(t, err)
		n++
	}
	if n != 200 {
		t.Errorf("%d entries", n)
	}
}

// TestDeep makes a tree that no path reaches, goes down and comes up again, with
// hardly a descriptor.
func TestDeep(t *testing.T) {
	const depth = 1500
	f := open(t, t.TempDir(), Options{Descriptors: 12})
	at, _, err := f.Root(t.Context())
	must(t, err)
	way := []vfs.Handle{at}
	for range depth {
		at, _, _, err = f.Create(t.Context(), at, "a-directory", &vfs.CreateHow{Type: vfs.TypeDir})
		must(t, err)
		way = append(way, at)
	}
	_, _, _, err = f.Create(t.Context(), at, "file", &vfs.CreateHow{Type: vfs.TypeReg})
	must(t, err)
	_, err = f.Remove(t.Context(), at, "file", false)
	must(t, err)
	opened := f.slots.opens
	for i := depth - 1; i >= 0; i-- {
		_, err := f.Remove(t.Context(), way[i], "a-directory", true)
		must(t, err)
	}
	if n := f.slots.opens - opened; n > 10*depth {
		t.Errorf("%d directories were opened on the way up from %d", n, depth)
	}
}

// TestPlainStale uses what is there no longer.
func TestPlainStale(t *testing.T) {
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "a", "b"), 0o700))
	f := open(t, top, Options{Descriptors: 12})
	root, _, err := f.Root(t.Context())
	must(t, err)
	a, _, _, err := f.Lookup(t.Context(), root, "a")
	must(t, err)
	b, _, _, err := f.Lookup(t.Context(), a, "b")
	must(t, err)
	must(t, os.Rename(filepath.Join(top, "a"), filepath.Join(top, "c")))
	must(t, os.MkdirAll(filepath.Join(top, "a", "b"), 0o700))
	f.closeAll()
	for _, h := range []vfs.Handle{a, b} {
		if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("getattr of what was renamed: %v", err)
		}
		if _, _, _, err := f.Lookup(t.Context(), h, "b"); !errors.Is(err, vfs.ErrStale) {
			t.Errorf("lookup in what was renamed: %v", err)
		}
	}
}

// TestMovedByMany moves two directories into each other, from all sides, as soon as they
// are known: calls that find one and that move it meanwhile agree on where it is.
func TestMovedByMany(t *testing.T) {
	for range 200 {
		f := open(t, t.TempDir(), Options{Descriptors: 40})
		root, _, err := f.Root(t.Context())
		must(t, err)
		var h [2]vfs.Handle
		for i := range h {
			h[i], _, _, err = f.Create(t.Context(), root, fmt.Sprint(i), &vfs.CreateHow{Type: vfs.TypeDir})
			must(t, err)
		}
		var all sync.WaitGroup
		for i := range 8 {
			name, into := fmt.Sprint(i%2), h[1-i%2]
			all.Go(func() {
				for range 10 {
					_, _, err := f.Rename(t.Context(), root, name, into, name)
					_, _, back := f.Rename(t.Context(), into, name, root, name)
					if errors.Is(err, vfs.ErrStale) || errors.Is(back, vfs.ErrStale) {
						t.Errorf("%v, %v", err, back)
					}
				}
			})
		}
		all.Wait()
	}
}

// closeAll closes the directories that nobody works in.
func (f *FS) closeAll() {
	f.slots.mu.Lock()
	defer f.slots.mu.Unlock()
	for f.slots.open.Len() > 0 {
		f.slots.closeIdle(f.slots.open.Front().Value.(*slot))
	}
}
