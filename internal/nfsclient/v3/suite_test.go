package v3_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

// TestSuite runs the suite on the raw FS, with nothing above it.
func TestSuite(t *testing.T) {
	const noOpen = "opening by handle makes no call; what is wrong shows with the first READ or WRITE"
	vfstest.Run(t, vfstest.Config{
		Callers: true,
		Differences: map[string]string{
			"open/not-a-file": noOpen,
			"open/stale":      noOpen,
			"handle/stale":    noOpen,
			"handle/garbage":  noOpen,
		},
		New: func(t *testing.T) vfs.FS { return real(t, memfs.New(memfs.Options{})) },
	})
}
