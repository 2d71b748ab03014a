//go:build linux

package localfs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestListingWhileOthersChange lists a directory page by page while names come
// and go: each one that stays appears exactly once. With NFSBOX_SOAK=1 there are
// a million of them.
func TestListingWhileOthersChange(t *testing.T) {
	stay, come := 700, 150
	if os.Getenv("NFSBOX_SOAK") == "1" {
		stay, come = 1_000_000, 10_000
	}
	for _, m := range []Mode{HandlesKernel, HandlesMap} {
		t.Run(m.String(), func(t *testing.T) {
			f, err := New(t.TempDir(), Options{Handles: m, Volatile: true})
			if err != nil {
				need.Missing(t, "root", err.Error())
			}
			closeLater(t, f)
			dir := filepath.Join(f.rootPath, "d")
			d := mkdir(t, f, root(t, f), "d")
			touch(t, dir, "stay", 0, stay)
			touch(t, dir, "go", 0, come)
			var wg sync.WaitGroup
			done := make(chan struct{})
			wg.Go(func() {
				for i := 0; i < come; i++ {
					if err := os.Remove(filepath.Join(dir, fmt.Sprint("go", i))); err != nil {
						t.Error(err)
					}
					touch(t, dir, "come", i, i+1)
				}
				close(done)
			})
			seen, passes := make([]uint8, stay), 0
			for going := true; going; passes++ {
				select {
				case <-done:
					going = false
				default:
				}
				clear(seen)
				listPages(t, f, d, seen)
				for i, n := range seen {
					if n != 1 {
						t.Fatalf("pass %d: stay%d is listed %d times", passes, i, n)
					}
				}
			}
			wg.Wait()
			t.Logf("%d passes", passes)
		})
	}
}

func closeLater(t *testing.T, f *FS) {
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

// touch makes empty files, from first to before last.
func touch(t testing.TB, dir, prefix string, first, last int) {
	for i := first; i < last; i++ {
		fd, err := unix.Open(filepath.Join(dir, fmt.Sprint(prefix, i)), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		if err == nil {
			err = unix.Close(fd)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// listPages lists d as READDIRPLUS does, a page at a time, and counts what stays.
func listPages(t testing.TB, f *FS, d vfs.Handle, seen []uint8) {
	const page = 300
	var at vfs.Pos
	for {
		n := 0
		for e, err := range f.ReadDir(t.Context(), d, at, vfs.MaskV3|vfs.MaskHandle, 64<<10) {
			if err != nil {
				t.Fatal(err)
			}
			if rest, ok := strings.CutPrefix(string(e.Name), "stay"); ok {
				i, err := strconv.Atoi(rest)
				if err != nil {
					t.Fatal(err)
				}
				seen[i]++
			}
			at = e.Next
			if n++; n == page {
				break
			}
		}
		if n == 0 {
			return
		}
	}
}

// TestListingMemory lists a directory and looks at what that leaves and takes:
// a page of a large one costs no more memory than one of a small one.
func TestListingMemory(t *testing.T) {
	files := 1_000
	if os.Getenv("NFSBOX_SOAK") == "1" {
		files = 1_000_000
	}
	f := open(t, t.TempDir(), Options{Handles: HandlesAuto, Volatile: true})
	if f.HandleMode() == HandlesMap {
		t.Skip("the map remembers every object; it has a bound of its own")
	}
	r := root(t, f)
	touch(t, f.rootPath, "stay", 0, files)
	seen := make([]uint8, files)
	listPages(t, f, r, seen)
	before := heap()
	var peak uint64
	n := 0
	for _, err := range f.ReadDir(t.Context(), r, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%(files/4) == 0 {
			peak = max(peak, heap())
		}
	}
	if peak > before+8<<20 {
		t.Errorf("a listing has taken %d bytes of memory", peak-before)
	}
	if n := f.Snapshot().Open; n > 2 {
		t.Errorf("%d descriptors are kept after a listing", n)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
