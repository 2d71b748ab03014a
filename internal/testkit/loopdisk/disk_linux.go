package loopdisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// Disk is an ext4 of 64 MiB. Its methods end the test if they fail.
type Disk struct {
	t     *testing.T
	image string
	At    string // where Mount mounts it
}

// New makes one with its image in dir. Without root, mkfs.ext4 or loop devices the test is skipped.
func New(t *testing.T, dir string) *Disk {
	t.Helper()
	mkfs := need.Tool(t, "root", "mkfs.ext4")
	d := &Disk{t, filepath.Join(dir, "image"), t.TempDir()}
	d.must(os.WriteFile(d.image, nil, 0o600))
	d.must(os.Truncate(d.image, 64<<20))
	if out, err := exec.CommandContext(t.Context(), mkfs, "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	return d
}

// Mount mounts it, and returns what unmounts it again.
func (d *Disk) Mount() (unmount func()) {
	d.t.Helper()
	if out, err := exec.CommandContext(d.t.Context(), "mount", "-o", "loop", d.image, d.At).CombinedOutput(); err != nil {
		need.Missing(d.t, "root", fmt.Sprintf("no loop device here: %v: %s", err, out))
	}
	return sync.OnceFunc(func() {
		if err := unix.Unmount(d.At, 0); err != nil {
			d.t.Errorf("umount: %v", err)
		}
	})
}

// PowerOff is what xfstests calls godown: nothing more reaches the disk, not even what the journal
// has in memory.
func (d *Disk) PowerOff() {
	d.t.Helper()
	const shutdown, noLogFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN
	top, err := os.Open(d.At)
	d.must(err)
	d.must(errors.Join(unix.IoctlSetPointerInt(int(top.Fd()), shutdown, noLogFlush), top.Close()))
}

func (d *Disk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}
