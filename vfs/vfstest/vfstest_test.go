package vfstest

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// fake is how the suite runs on memfs. Everything that was opened must have
// been closed.
func fake(opt memfs.Options) Config {
	return Config{
		New: func(t *testing.T) vfs.FS {
			f := memfs.New(opt)
			t.Cleanup(func() {
				if n := f.OpenFiles(); n != 0 {
					t.Errorf("%d files were not closed", n)
				}
			})
			return f
		},
		Restart: func(t *testing.T, f vfs.FS) vfs.FS {
			f.(*memfs.FS).Restart()
			return f
		},
		Callers: true,
	}
}

func TestMemFS(t *testing.T) { Run(t, fake(memfs.Options{})) }

// TestShortTransfers runs on a fake that takes and gives little at once, with
// times as coarse as those of old disks.
func TestShortTransfers(t *testing.T) {
	Run(t, fake(memfs.Options{ReadMax: 5000, WriteMax: 3000, TimeDelta: 1e9}))
}

// TestModelSeeds runs the model on more than the one seed of Run.
func TestModelSeeds(t *testing.T) {
	for seed := range uint64(5) {
		RunModel(t, fake(memfs.Options{}), seed, 300)
	}
}

// TestDifferences asks for the skip of a test that would fail.
func TestDifferences(t *testing.T) {
	c := fake(memfs.Options{MaxLinks: 1})
	reason := "one name for each file"
	c.Differences = map[string]string{"model": reason}
	for _, name := range []string{
		"link/counts", "link/shares-content", "link/of-symlink", "link/modifies-directory",
		"remove/one-of-two-names", "rename/replaces-other-types", "rename/same-object", "acl/linked", "xattr/linked",
	} {
		c.Differences[name] = reason
	}
	Run(t, c)
}
