//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// owned reports whether a file is ours. What belongs to another user is no secret
// from that one, whatever user we are.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// sharedWith names the users, beside the server's own and root, that could put a folder
// in the place of one that is in this folder, and says what to do; "" is nobody. Where
// it is sticky (unlink(2), EPERM) that is its owner alone. A group of the owner's own number is
// the owner's own: umasks that let it write are for such ones (pam_umask(8), usergroups).
func sharedWith(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	us, mode := os.Geteuid(), info.Mode()
	switch group := mode.Perm()&0o020 != 0 && st.Gid != st.Uid; {
	case st.Uid != 0 && int(st.Uid) != us:
		return fmt.Sprintf("belongs to user %d, and this is user %d: serve as that one, chown it", st.Uid, us)
	case mode&fs.ModeSticky == 0 && (group || mode.Perm()&0o002 != 0):
		return fmt.Sprintf("can be written to by others (mode %04o): chmod 700 it", mode.Perm())
	}
	return ""
}

// hold locks f until it is closed, or the process ends (flock(2)). It is false if
// another one has the lock.
func hold(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
