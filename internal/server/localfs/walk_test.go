//go:build linux

package localfs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// Sizes of the tree that is walked: on every day, and with NFSBOX_SOAK set.
const (
	walkFiles     = 4_000
	walkFilesSoak = 1_000_000
	walkPerDir    = 500
	walkOpen      = 48 // descriptors that the FS may keep
)

// TestManyFiles lists a tree that is much larger than what is kept open, restarts
// the server, and uses every handle.
func TestManyFiles(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		files := walkFiles
		if soak() {
			files = walkFilesSoak
		}
		dir := inMemory(t)
		plant(t, dir, files)
		o = o.anew(t)
		o.MaxOpen = walkOpen
		f := must[*FS](t)(New(dir, o))
		type leaf struct {
			x  vfs.Handle
			id uint64
		}
		var all []leaf
		for d, err := range f.ReadDir(t.Context(), f.root, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				t.Fatal(err)
			}
			x := d.Handle
			all = append(all, leaf{x, d.FileID})
			for e, err := range f.ReadDir(t.Context(), x, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, leaf{e.Handle, e.FileID})
			}
		}
		if want := files + files/walkPerDir; len(all) != want {
			t.Fatalf("%d objects are listed, want %d", len(all), want)
		}
		seen := make(map[vfs.Handle]struct{}, len(all))
		for _, l := range all {
			seen[l.x] = struct{}{}
		}
		if len(seen) != len(all) {
			t.Errorf("%d handles for %d objects", len(seen), len(all))
		}
		f = reopenFS(t, f, dir, o)
		t.Cleanup(func() { closeFS(t, f) })
		before := openFDs(t)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, l := range all {
			a, err := f.GetAttr(t.Context(), l.x, vfs.MaskV3)
			if err != nil || a.FileID != l.id {
				t.Fatalf("inode %d, by its handle: %d, %v", l.id, a.FileID, err)
			}
		}
		if n := openFDs(t) - before; n > walkOpen {
			t.Errorf("%d descriptors more are open", n)
		}
	})
}

// plant makes directories of empty files.
func plant(t *testing.T, dir string, files int) {
	t.Helper()
	for i := range files {
		d := filepath.Join(dir, fmt.Sprint("d", i/walkPerDir))
		if i%walkPerDir == 0 {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(d, fmt.Sprint("f", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
