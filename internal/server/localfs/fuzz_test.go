//go:build linux

package localfs

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
	"github.com/nfsbox/nfsbox/vfs"
)

// FuzzKernelHandle takes handles apart and makes them again.
func FuzzKernelHandle(f *testing.F) {
	f.Add([]byte{handleKernel, 0, 0, 0, 0, 1, 1, 2, 3, 4})
	f.Add([]byte{handleKernel, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := vfs.MakeHandle(b)
		if err != nil {
			return
		}
		var r linux.RawHandle
		key, err := unpackHandle(&r, x)
		if err != nil {
			return
		}
		if y, err := packHandle(&r, key); err != nil || x != y {
			t.Errorf("%v becomes %v, %v", x, y, err)
		}
	})
}
