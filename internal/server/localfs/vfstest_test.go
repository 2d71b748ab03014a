//go:build linux

package localfs

import (
	"os"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// tree is what the suite has made: a directory and the FS over it, which a
// restart replaces.
type tree struct {
	dir string
	o   Options
	now *FS
}

// TestSuite runs behind the narrowest gate that there is.
func TestSuite(t *testing.T) {
	bothModes(t, func(t *testing.T, o Options) {
		o.Gate = narrow(t).Export("suite")
		trees := make(map[vfs.FS]*tree)
		vfstest.Run(t, vfstest.Config{
			Callers: isRoot(),
			New: func(t *testing.T) vfs.FS {
				x := &tree{dir: inMemory(t), o: o}
				if o.Handles == HandlesKernel && soak() {
					x.dir = t.TempDir()
				}
				if o.StateDir != "" {
					x.o.StateDir = t.TempDir()
				}
				f, err := New(x.dir, x.o)
				if err != nil {
					t.Fatal(err)
				}
				x.now = f
				trees[f] = x
				t.Cleanup(func() { closeFS(t, x.now) })
				return f
			},
			Restart: func(t *testing.T, f vfs.FS) vfs.FS {
				x := trees[f]
				x.now = reopenFS(t, x.now, x.dir, x.o)
				trees[x.now] = x
				return x.now
			},
		})
	})
}

// inMemory is a temporary directory in memory, where there is such a place:
// another file system than the usual one, and a fast one.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "localfs")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
