package dirfs

import (
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

func TestSuite(t *testing.T) {
	for name, o := range map[string]Options{"plenty": {}, "few descriptors": {Descriptors: 40}} {
		t.Run(name, func(t *testing.T) {
			vfstest.Run(t, vfstest.Config{
				New: func(t *testing.T) vfs.FS { return open(t, t.TempDir(), o) },
			})
		})
	}
}
