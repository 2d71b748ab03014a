//go:build linux

package localfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/localfs/fdcache"
	"github.com/nfsbox/nfsbox/internal/server/localfs/handlemap"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// listAll lists dir with handles.
func listAll(t *testing.T, f vfs.FS, dir vfs.Handle) map[string]vfs.Handle {
	t.Helper()
	all := make(map[string]vfs.Handle)
	for e, err := range f.ReadDir(t.Context(), dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all[string(e.Name)] = e.Handle
	}
	return all
}

// TestMapForgetsWhatIsGone has a local program make, rename and remove many files that
// are listed meanwhile, again and again.
func TestMapForgetsWhatIsGone(t *testing.T) {
	need.Speed(t, "one goroutine")
	need.Time(t, "a map of handles whose files go, many times")
	synctest.Test(t, func(t *testing.T) {
		const files = handlemap.SweepSlack + handlemap.SweepSlack/2
		dir, o := t.TempDir(), mapOptions(t)
		f := must[*FS](t)(New(dir, o))
		r := root(t, f)
		gone, kept := mkdir(t, f, r, "gone"), mkfile(t, f, r, "kept", "kept")
		name := func(i int) string { return filepath.Join(dir, "gone", fmt.Sprint(i)) }
		for range 4 {
			for i := range files {
				must[bool](t)(true, os.WriteFile(name(i), nil, 0o600))
			}
			all := listAll(t, f, gone)
			if len(all) != files {
				t.Fatalf("%d files are listed, of %d", len(all), files)
			}
			must[bool](t)(true, os.Rename(name(1), name(files)))
			for i := 2; i < files; i++ {
				must[bool](t)(true, os.Remove(name(i)))
			}
			time.Sleep(2 * handlemap.SweepParts * fdcache.SweepEvery)
			synctest.Wait()
			for i, want := range map[int]bool{0: true, 1: true, 2: false, files - 1: false} {
				_, err := f.GetAttr(t.Context(), all[fmt.Sprint(i)], vfs.MaskV3)
				if (err == nil) != want {
					t.Errorf("file %d: %v", i, err)
				}
			}
			must[bool](t)(true, os.Remove(name(0)))
			must[bool](t)(true, os.Remove(name(files)))
			if known, slots, _ := f.mapped.Size(); known > handlemap.SweepSlack || slots > files+handlemap.SweepSlack {
				t.Errorf("%d objects are known, in %d slots, and %d files have gone", known, slots, files)
			}
		}
		if got := content(t, f, kept); got != "kept" {
			t.Errorf("what is there reads %q", got)
		}
		closeFS(t, f)
	})
}

// TestFullMap has more files than handles.
func TestFullMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const files, most = 200, 100
		dir, o := t.TempDir(), mapOptions(t)
		told := 0
		o.Report = func(error) { told++ }
		f := must[*FS](t)(New(dir, o))
		f.mapped.SetMost(most)
		for i := range files {
			must[bool](t)(true, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
		}
		handles := func() (all map[string]vfs.Handle, n int) {
			all = listAll(t, f, root(t, f))
			for _, x := range all {
				if !x.IsZero() {
					n++
				}
			}
			return all, n
		}
		all, n := handles()
		if len(all) != files || n != most-1 || told != 1 {
			t.Errorf("%d files are listed, of %d, %d with handles, told %d times", len(all), files, n, told)
		}
		for name, x := range all {
			_, _, _, err := f.Lookup(t.Context(), root(t, f), name)
			if x.IsZero() {
				wantErr(t, err, vfs.ErrServerFault)
			} else if err != nil {
				t.Error(err)
			}
			if !x.IsZero() {
				must[bool](t)(true, os.Remove(filepath.Join(dir, name)))
			}
		}
		time.Sleep(10 * fdcache.SweepEvery)
		synctest.Wait()
		if all, n := handles(); len(all) != files-most+1 || n != most-1 {
			t.Errorf("%d files are listed, %d with handles, after the others have gone", len(all), n)
		}
		closeFS(t, f)
	})
}
