//go:build linux

package fusefs

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// widen has the kernel read ahead as much as one of its READs may hold. Its own default is an eighth of that, and it takes
// no more than its default from a mount. Only root may say it, and where /sys cannot be written the default stays.
func (m *Mount) widen() {
	var st unix.Statx_t
	// Nobody is asked: a server that does not answer must not keep mount waiting.
	if unix.Statx(unix.AT_FDCWD, m.dir, unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, 0, &st) != nil {
		return
	}
	_ = os.WriteFile(windowFile(st.Dev_major, st.Dev_minor), []byte(strconv.Itoa(maxTransfer>>10)), 0)
}

// windowFile is where a file system's read-ahead stands, in KiB.
func windowFile(major, minor uint32) string {
	return fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", major, minor)
}
