package v3_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// TestSuite runs the suite on the raw FS, with nothing above it.
func TestSuite(t *testing.T) {
	vfstest.Run(t, vfstest.Config{
		Callers: true,
		New:     func(t *testing.T) vfs.FS { return real(t, memfs.New(memfs.Options{})) },
	})
}
