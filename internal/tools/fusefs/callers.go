//go:build linux

package fusefs

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/vfs"
)

// callers are the views of the processes that use the mount.
type callers struct {
	fs     vfs.FS
	fixed  bool
	groups func(who fuse.Caller) []uint32

	mu   sync.Mutex
	seen map[fuse.Caller]view
}

type view struct {
	fs vfs.FS
	at time.Time
}

// view is the file system as the process sees it. Its groups are asked for anew after callerAge.
func (c *callers) view(who fuse.Caller, now time.Time) vfs.FS {
	if c.fixed {
		return c.fs
	}
	c.mu.Lock()
	v, ok := c.seen[who]
	c.mu.Unlock()
	if ok && now.Sub(v.at) < callerAge {
		return v.fs
	}
	v = view{c.fs.As(&vfs.Caller{UID: who.Uid, GID: who.Gid, Groups: c.groups(who)}), now}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= maxCallers {
		clear(c.seen)
	}
	c.seen[who] = v
	return v.fs
}

// groupsOf are a thread's further groups; none if it has gone, or is not to be seen from here. Its number may be another
// thread's by now: the groups of another user are nobody's.
func groupsOf(who fuse.Caller) []uint32 {
	users, ok := status(who.Pid, "Uid:") // real, effective, saved, and that for files
	if f := strings.Fields(users); !ok || len(f) != 4 || f[3] != strconv.FormatUint(uint64(who.Uid), 10) {
		return nil
	}
	text, ok := status(who.Pid, "Groups:")
	if !ok {
		return nil
	}
	var groups []uint32
	for f := range strings.FieldsSeq(text) {
		if g, err := strconv.ParseUint(f, 10, 32); err == nil {
			groups = append(groups, uint32(g))
		}
	}
	return groups
}

// status is a line of /proc/PID/status, which also has threads.
func status(pid uint32, field string) (string, bool) {
	if pid == 0 { // of another namespace, or the kernel itself
		return "", false
	}
	text, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/status")
	if err != nil {
		return "", false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), field); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// killed reports whether a thread has to die: SIGKILL is waiting for it, as also after every other signal that ends
// its process, or it has gone.
func killed(pid uint32) bool {
	if pid == 0 {
		return true // nobody knows; it was interrupted
	}
	const sigkill = 1 << 8
	text, ok := status(pid, "SigPnd:")
	pending, err := strconv.ParseUint(text, 16, 64)
	return !ok || err != nil || pending&sigkill != 0
}

// exiting reports whether a thread is on its way out, in which nothing interrupts it, and whether a signal is why.
func exiting(pid uint32) (out, bySignal bool) {
	if pid == 0 {
		return false, false
	}
	text, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/stat")
	if err != nil {
		return true, true
	}
	return parseExit(string(text))
}

// leaving is exiting for one whose FLUSH is being answered. A process in execve(2) closes files, and until they are closed
// nobody can read its state: what would wait for that, in a FLUSH, would wait for ever.
func leaving(pid uint32) bool {
	told := make(chan bool, 1)
	go func() { // ends at the latest when the FLUSH has been answered
		out, _ := exiting(pid)
		told <- out
	}()
	select {
	case out := <-told:
		return out
	case <-time.After(statePatience):
		return false
	}
}

// parseExit reads proc_pid_stat(5). What stands behind the name of the program begins with field 3.
func parseExit(text string) (out, bySignal bool) {
	const (
		flags    = 9 - 3
		exitCode = 52 - 3
		pfExit   = 0x4 // PF_EXITING
	)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= exitCode {
		return false, false
	}
	f, err := strconv.ParseUint(fields[flags], 10, 64)
	code, err2 := strconv.ParseUint(fields[exitCode], 10, 32)
	return err == nil && f&pfExit != 0, err2 == nil && code&0x7f != 0
}
