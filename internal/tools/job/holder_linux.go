package job

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// maxLocks bounds how much of the kernel's list of locks is read, about 80 bytes for each.
// Beyond it the holder stays unknown.
const maxLocks = 1 << 20

// holder says who has locked f, as far as the kernel's list of locks tells (proc(5)): it does
// not know processes of other hosts and of other PID namespaces.
func holder(f *os.File) string {
	const other = "another run"
	info, err := f.Stat()
	if err != nil {
		return other
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return other
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return other
	}
	defer func() { _ = locks.Close() }() // nothing was written
	lines := bufio.NewScanner(io.LimitReader(locks, maxLocks))
	for lines.Scan() {
		// 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF
		var n, pid int
		var kind, how, mode string
		var major, minor, inode uint64
		_, err := fmt.Sscanf(strings.TrimSpace(lines.Text()), "%d: %s %s %s %d %x:%x:%d", &n, &kind, &how, &mode, &pid, &major, &minor, &inode)
		if err == nil && kind == "FLOCK" && inode == st.Ino && pid > 0 {
			return fmt.Sprintf("%s, process %d", other, pid)
		}
	}
	return other
}
