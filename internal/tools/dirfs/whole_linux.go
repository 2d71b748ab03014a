package dirfs

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/base/syncfs"
)

// start opens top's directory for syncs of its file system, whose device is dev.
func (w *whole) start(top *hostDir, dev uint64) {
	if !syncfs.Tells(top.fd) {
		return
	}
	fd, err := top.readable() // syncfs refuses O_PATH
	if err != nil {
		return
	}
	w.file = os.NewFile(uintptr(fd), "")
	w.dev, w.sync = dev, func() error { return control(w.file, unix.Syncfs) }
	w.shared = syncfs.New(func(int) error { return w.sync() }, 0, time.Now)
}
