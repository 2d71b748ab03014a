package writeback_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/readahead"
	"github.com/nfsbox/nfsbox/internal/client/writeback"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// small makes a wrapper on a file system that takes small READs and WRITEs only.
func small(*testing.T) vfs.FS {
	return writeback.New(memfs.New(memfs.Options{ReadMax: 8 << 10, WriteMax: 8 << 10}), writeback.Options{})
}

// smallStack is small with reading ahead below, so that little files are read ahead.
func smallStack(*testing.T) vfs.FS {
	below := memfs.New(memfs.Options{ReadMax: 8 << 10, WriteMax: 8 << 10})
	return writeback.New(readahead.New(below, readahead.Options{}), writeback.Options{})
}

// TestSuite runs the suite over the wrapper, alone and over reading ahead.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{New: small, Callers: true})
	vfstest.Run(t, vfstest.Config{New: smallStack, Callers: true})
}

// TestSuiteSmall runs it where there is hardly room for anything.
func TestSuiteSmall(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New: func(*testing.T) vfs.FS {
			below := memfs.New(memfs.Options{ReadMax: 4 << 10, WriteMax: 4 << 10})
			ahead := readahead.New(below, readahead.Options{File: 16 << 10, Total: 24 << 10})
			return writeback.New(ahead, writeback.Options{MaxDirty: 32 << 10})
		},
		Callers: true,
	})
}

// TestSuiteModel draws more operations than the suite does.
func TestSuiteModel(t *testing.T) {
	for seed := range uint64(10) {
		vfstest.RunModel(t, vfstest.Config{New: small, Callers: true}, seed, 1000)
		vfstest.RunModel(t, vfstest.Config{New: smallStack, Callers: true}, seed, 1000)
	}
}

// TestSuitePowers proves the powers that the wrapper passes on, alone and over reading
// ahead.
func TestSuitePowers(t *testing.T) {
	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(_ *testing.T, over vfs.FS) vfs.FS {
		return writeback.New(over, writeback.Options{})
	}})
	vfstest.RunPowers(t, vfstest.PowersConfig{New: func(_ *testing.T, over vfs.FS) vfs.FS {
		return writeback.New(readahead.New(over, readahead.Options{}), writeback.Options{})
	}})
}
