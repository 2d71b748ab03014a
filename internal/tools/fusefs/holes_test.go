//go:build linux

package fusefs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

// TestHoles: NFSv3 has no call that reserves room or punches holes, and fallocate(2) says so, as on Linux' own client, in
// place of a promise that nobody keeps. The whole file counts as data.
func TestHoles(t *testing.T) {
	dir := mount(t, serve(t, t.TempDir()), Options{})
	f, err := os.Create(filepath.Join(dir, "f"))
	expect.OK(t, err)
	_, err = f.WriteString("0123456789")
	expect.OK(t, err)
	fd := int(f.Fd())
	for _, mode := range []uint32{0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE} {
		expect.Errno(t, unix.Fallocate(fd, mode, 0, 1<<20), syscall.EOPNOTSUPP)
	}
	expect.OK(t, f.Truncate(1<<20))
	for _, c := range []struct {
		whence    int
		from, end int64
	}{{unix.SEEK_DATA, 0, 0}, {unix.SEEK_DATA, 4096, 4096}, {unix.SEEK_HOLE, 0, 1 << 20}, {unix.SEEK_END, -1, 1<<20 - 1}} {
		if at, err := unix.Seek(fd, c.from, c.whence); err != nil || at != c.end {
			t.Errorf("lseek(%d, %d): %d, %v; want %d", c.from, c.whence, at, err, c.end)
		}
	}
	_, err = unix.Seek(fd, 1<<20, unix.SEEK_DATA)
	expect.Errno(t, err, syscall.ENXIO)
	expect.OK(t, f.Close())
}

// TestWindow: the kernel reads ahead as much as a READ of it may hold, in root's mounts.
func TestWindow(t *testing.T) {
	need.Root(t, "the read-ahead of a mount")
	dir := mountFS(t, memfs.New(memfs.Options{Mode: 0o777}), Options{})
	var st unix.Stat_t
	expect.OK(t, unix.Stat(dir, &st))
	text, err := os.ReadFile(windowFile(unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		t.Skipf("NOT TESTED: the read-ahead of a mount: %v", err)
	}
	if got := strings.TrimSpace(string(text)); got != strconv.Itoa(maxTransfer>>10) {
		t.Errorf("the kernel reads %s KiB ahead", got)
	}
}
