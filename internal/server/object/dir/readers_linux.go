package dir

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

const (
	// maxLocks bounds how much of the kernel's list of locks is read, about 80 bytes for each. Readers behind it are not named.
	maxLocks = 1 << 20
	// maxCommand bounds what is read of a command line. The rest is left out.
	maxCommand = 4 << 10
	// tick is the unit of a process's beginning in proc(5), on all that Go runs on.
	tick = 10 * time.Millisecond
)

// readBy is the error for a store whose root directory, fd, others have locked as they read it. Readers may not be able to write
// their names into it, so the kernel's list of locks is asked, which does not know processes of other PID namespaces.
func readBy(fd int) error {
	held := &layout.HeldError{Reading: true}
	var st unix.Stat_t
	locks, err := os.Open("/proc/locks")
	if err != nil || unix.Fstat(fd, &st) != nil {
		return held
	}
	defer func() { _ = locks.Close() }() // nothing was written
	for lines := bufio.NewScanner(io.LimitReader(locks, maxLocks)); lines.Scan(); {
		// 1: FLOCK  ADVISORY  READ 1234 fd:01:5678 0 EOF
		var n, pid int
		var kind, how, mode string
		var major, minor, inode uint64
		_, err := fmt.Sscanf(lines.Text(), "%d: %s %s %s %d %x:%x:%d", &n, &kind, &how, &mode, &pid, &major, &minor, &inode)
		switch {
		case err != nil || kind != "FLOCK" || mode != "READ" || inode != st.Ino || pid <= 0:
		case held.Holder.PID != 0:
			held.More++
		default:
			held.Holder, held.Since = layout.OnHost(pid, argsOf(pid)), sinceOf(pid)
		}
	}
	return held
}

// argsOf is the command line of a process; nil: that is not known.
func argsOf(pid int) []string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // nothing was written
	b, _ := io.ReadAll(io.LimitReader(f, maxCommand))
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// sinceOf is when a process began (proc_pid_stat(5), field 22); zero: that is not known.
func sinceOf(pid int) time.Time {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var up unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the name before may have anything in it
	const field = 22 - 3                                      // the first one behind the name is the third
	if len(fields) <= field {
		return time.Time{}
	}
	ticks, err := strconv.ParseInt(string(fields[field]), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ticks)*tick - time.Duration(up.Nano()))
}
