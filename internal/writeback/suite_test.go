package writeback_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/internal/writeback"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// TestSuite runs the suite over the wrapper, on a file system that takes small
// writes only.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		New: func(*testing.T) vfs.FS {
			return writeback.New(memfs.New(memfs.Options{WriteMax: 64 << 10}), writeback.Options{})
		},
		Callers: true,
	})
}
