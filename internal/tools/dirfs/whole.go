package dirfs

import (
	"os"

	"github.com/nfsbox/nfsbox/internal/base/syncfs"
)

// whole is one sync of the root's file system in place of those of its objects. It goes through a
// descriptor that was open before this FS wrote anything.
type whole struct {
	dev    uint64
	file   *os.File     // by which sync does it
	sync   func() error // nil: objects are synced one by one
	shared *syncfs.Whole
}

// or makes an object of the file system dev stable by a sync of all of it, or else by alone.
func (w *whole) or(dev uint64, alone func() error) error {
	if w.dev != dev {
		return alone()
	}
	return w.shared.Or(alone)
}

// end closes the descriptor. Files that are still open are synced by themselves from then on.
func (w *whole) end() {
	if w.file != nil {
		_ = w.file.Close() // nothing was written by it
	}
}
