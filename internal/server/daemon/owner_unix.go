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
// With an access list the bits of the group are those of all whom it names (acl(5)).
func sharedWith(path string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	switch us := os.Geteuid(); {
	case st.Uid != 0 && int(st.Uid) != us:
		return fmt.Sprintf("belongs to user %d, and this is user %d: serve as that one, chown it", st.Uid, us)
	case listed(path, info.Mode()):
		return fmt.Sprintf("can be written to by others (access list, mode %04o): setfacl -b it and chmod 700 it", info.Mode().Perm())
	case written(info.Mode(), st):
		return fmt.Sprintf("can be written to by others (mode %04o): chmod 700 it", info.Mode().Perm())
	}
	return ""
}

// listed reports whether those whom an access list names can replace what is in a folder.
func listed(path string, mode fs.FileMode) bool {
	return mode&fs.ModeSticky == 0 && mode.Perm()&0o020 != 0 && hasList(path)
}

// written reports whether others than its owner can replace what is in a folder.
func written(mode fs.FileMode, st *syscall.Stat_t) bool {
	group := mode.Perm()&0o020 != 0 && st.Gid != st.Uid
	return mode&fs.ModeSticky == 0 && (group || mode.Perm()&0o002 != 0)
}

// replacedBy is sharedWith for at, a folder or a symbolic link on a way that begins at the
// directory top. The owner of top is root, or can do anything in any case. In a user name
// space it may be the number of all users who have none there (user_namespaces(7)).
func replacedBy(at mark, top fs.FileInfo) (who, mend string) {
	info := at.info
	st, ok := info.Sys().(*syscall.Stat_t)
	first, ok2 := top.Sys().(*syscall.Stat_t)
	if !ok || !ok2 {
		return "", ""
	}
	mode := info.Mode()
	link := mode&fs.ModeSymlink != 0
	switch stranger := st.Uid != 0 && st.Uid != first.Uid && int(st.Uid) != os.Geteuid(); {
	case stranger && link:
		return fmt.Sprintf("belongs to user %d", st.Uid), "chown -h it"
	case stranger:
		return fmt.Sprintf("belongs to user %d", st.Uid), "chown it"
	case !link && listed(at.path, mode):
		return fmt.Sprintf("can be written to by others (access list, mode %04o)", mode.Perm()), "setfacl -b and chmod go-w it"
	case !link && written(mode, st):
		return fmt.Sprintf("can be written to by others (mode %04o)", mode.Perm()), "chmod go-w or chmod +t it"
	}
	return "", ""
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
