package dirfs

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/vfstest"
)

func TestSuite(t *testing.T) {
	for name, o := range map[string]Options{"plenty": {}, "few descriptors": {Descriptors: 40}} {
		t.Run(name, func(t *testing.T) {
			if o.Descriptors > 0 {
				need.Time(t, "the suite with few descriptors; with plenty it runs")
			}
			vfstest.Run(t, vfstest.Config{
				New: func(t *testing.T) vfs.FS { return open(t, t.TempDir(), o) },
			})
		})
	}
}
