package cache_test

import (
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/cache"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// over makes a cache over a file system, in a directory of the test's. The clock is ahead, so that what has
// just been written may be kept.
func over(t *testing.T, below vfs.FS, o store.Options) *cache.FS {
	t.Helper()
	o.Dir = t.TempDir()
	if err := chmod(o.Dir); err != nil {
		t.Fatal(err)
	}
	o.Limits = store.Limits{Brun: 3, Bcull: 2, Bstop: 1, Frun: 3, Fcull: 2, Fstop: 1}
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return cache.New(below, st, cache.Options{Server: "test", Now: func() time.Time { return time.Now().Add(time.Hour) }})
}

// TestSuite runs the suite over the wrapper, which reads from its directory.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New:     func(t *testing.T) vfs.FS { return over(t, memfs.New(memfs.Options{}), store.Options{}) },
		Callers: true,
	})
}

// TestSuiteSmall runs it where READs are small, and there is room for hardly anything.
func TestSuiteSmall(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New: func(t *testing.T) vfs.FS {
			below := memfs.New(memfs.Options{ReadMax: 8 << 10, WriteMax: 8 << 10})
			return writeback.New(over(t, below, store.Options{Granule: store.MinGranule, Size: 200 << 10}), writeback.Options{})
		},
		Callers: true,
	})
}

// TestSuiteModel draws more operations than the suite does.
func TestSuiteModel(t *testing.T) {
	for seed := range uint64(2) {
		vfstest.RunModel(t, vfstest.Config{
			New:     func(t *testing.T) vfs.FS { return over(t, memfs.New(memfs.Options{}), store.Options{}) },
			Callers: true,
		}, seed, 1000)
	}
}

// TestSuitePowers proves the powers that the wrapper passes on.
func TestSuitePowers(t *testing.T) {
	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(t *testing.T, below vfs.FS) vfs.FS {
		return over(t, below, store.Options{})
	}})
}
